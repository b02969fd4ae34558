//! The process of a PE: its position in the simulation, and its channel to the coordinator.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use flitcast_node::rounds::Channel;
use flitcast_plan::cost::Model;
use flitcast_proto::wire::control::{Doing, FromPe, ToPe};
use flitcast_proto::{PeId, RoundId, Time};

use super::super::Plant;
use super::super::cause::Cause;
use super::super::scenario::{Scenario, Way};
use super::super::world::World;

#[derive(Clone)]
pub(in super::super) struct Process {
    pub(in super::super) world: Rc<RefCell<World>>,
    pub(in super::super) scenario: Arc<Scenario>,
    pub(in super::super) pe: PeId,
    /// Index of the tree.
    pub(in super::super) lane: usize,
    pub(in super::super) plant: Option<Plant>,
}

impl Process {
    pub(super) fn now(&self) -> Time {
        Time(self.world.borrow().now)
    }

    pub(super) fn to(&self, to: PeId) -> Way {
        let (lane, from) = (self.lane, self.pe);
        Way { lane, from, to }
    }

    pub(super) fn from(&self, from: PeId) -> Way {
        self.to(from).back()
    }

    /// Waits until `look` returns a result.
    pub(super) async fn until<T>(&self, mut look: impl FnMut(&mut World) -> Option<T>) -> T {
        poll_fn(|_| match look(&mut self.world.borrow_mut()) {
            Some(found) => Poll::Ready(found),
            None => Poll::Pending,
        })
        .await
    }

    pub(super) fn model(&self) -> &Model {
        &self.scenario.lanes[self.lane].model
    }

    pub(super) fn does(&self, doing: Doing) {
        self.world.borrow_mut().pulse(self.pe).doing = doing;
    }
}

impl Channel for Process {
    type Error = Cause;

    async fn next_command(&mut self) -> Result<ToPe, Cause> {
        let pe = self.pe;
        Ok(self.until(|world| world.next_command(pe)).await)
    }

    async fn next_command_in(&mut self, _round: RoundId) -> Result<ToPe, Cause> {
        self.next_command().await
    }

    async fn send_reply(&mut self, reply: FromPe) -> Result<(), Cause> {
        self.world.borrow_mut().send_reply(self.pe, reply);
        Ok(())
    }

    fn unexpected(&self, command: &ToPe, when: &'static str) -> Cause {
        Cause::Unexpected(format!("{command:?} {when}"))
    }

    fn fault(&self, round: RoundId, cause: &Cause) -> Option<FromPe> {
        let world = &mut self.world.borrow_mut();
        let (now, pe) = (world.now, self.pe);
        let text = format_args!("{pe} gives round {round} up: {cause}");
        world.trace.note(now, text);
        Some(FromPe::Fault {
            round,
            peer: cause.peer(),
            reason: cause.to_string(),
            bad_input: false,
            output_stands: false,
            hung_up: matches!(cause, Cause::Closed { .. } | Cause::Truncated { .. }),
            changed: Vec::new(),
        })
    }
}
