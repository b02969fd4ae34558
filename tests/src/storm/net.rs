//! What one PE's process sees of the world: the time, its connections, and whether its
//! neighbours live. It waits here and nowhere else, and never without a limit.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use flitcast_proto::{PeId, Time};

use super::Plant;
use super::cause::Cause;
use super::scenario::Way;
use super::world::World;

/// What a process sees of the world.
#[derive(Clone)]
pub(super) struct Net {
    pub(super) world: Rc<RefCell<World>>,
    pub(super) pe: PeId,
    pub(super) frame_limit: usize,
    pub(super) plant: Option<Plant>,
}

impl Net {
    pub(super) fn now(&self) -> Time {
        Time(self.world.borrow().now)
    }

    /// Waits until `look` has something, or a neighbour is gone or silent.
    pub(super) async fn until<T>(
        &self,
        mut look: impl FnMut(&mut World) -> Option<T>,
    ) -> Result<T, Cause> {
        poll_fn(|_| {
            let mut world = self.world.borrow_mut();
            if let Some(found) = look(&mut world) {
                return Poll::Ready(Ok(found));
            }
            match world.trouble(self.pe, self.frame_limit) {
                Some(Cause::Silent { .. }) if self.plant == Some(Plant::TrustsSilence) => {
                    Poll::Pending
                }
                Some(cause) => Poll::Ready(Err(cause)),
                None => Poll::Pending,
            }
        })
        .await
    }

    pub(super) async fn sleep_until(&self, at: u64) {
        self.world.borrow_mut().wake_at(at, self.pe);
        poll_fn(|_| match self.world.borrow().now >= at {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }

    /// The next frame from a neighbour; `None` if it is not there when something is due.
    pub(super) async fn read_frame(
        &self,
        from: PeId,
        due: Option<u64>,
    ) -> Result<Option<Vec<u8>>, Cause> {
        let way = Way { from, to: self.pe };
        if let Some(due) = due {
            self.world.borrow_mut().wake_at(due, self.pe);
        }
        let look = |world: &mut World| match world.read(way, self.frame_limit) {
            Some(frame) => Some(frame.map(Some)),
            None => due.is_some_and(|due| due <= world.now).then_some(Ok(None)),
        };
        let frame = self.until(look).await?;
        frame.map_err(|error| Cause::Wire { peer: from, error })
    }

    pub(super) async fn send_flit(&self, to: PeId, frame: &[u8], counts: u64) -> Result<(), Cause> {
        let way = Way { from: self.pe, to };
        let room = |world: &mut World| world.has_room(way, counts).then_some(());
        self.until(room).await?;
        self.world.borrow_mut().send(way, frame, counts);
        Ok(())
    }

    /// A few bytes: they queue for the port, and nobody waits for that.
    pub(super) fn send_control(&self, to: PeId, frame: &[u8], counts: u64) {
        let way = Way { from: self.pe, to };
        self.world.borrow_mut().send(way, frame, counts);
    }
}
