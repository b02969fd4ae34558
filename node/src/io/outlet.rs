//! The sends of a round on a PE's connections. A round that sends and receives at the same time
//! continues while frames are in progress, and its short frames to one neighbour are coalesced; any
//! other round waits until a frame is written.

use flitcast_proto::PeId;
use flitcast_proto::wire::edge::EdgeFrame;
use smallvec::SmallVec;

use crate::link::{Link, LinkError, Outgoing};
use crate::neighbours::Neighbours;
use crate::round::SendProgress;

/// The sends of one round.
#[derive(Default)]
pub(super) struct Outlet {
    /// Whether the round continues while frames are in progress.
    is_duplex: bool,
    /// The neighbour whose short frames are coalesced into one system call.
    gathering: Option<PeId>,
    /// The receivers of flits in progress.
    pub(super) in_progress: SmallVec<[PeId; 1]>,
}

impl Outlet {
    pub(super) fn new(is_duplex: bool) -> Outlet {
        Outlet {
            is_duplex,
            ..Outlet::default()
        }
    }

    pub(super) async fn control(
        &mut self,
        neighbours: &mut Neighbours,
        to: PeId,
        frame: &EdgeFrame,
    ) -> Result<(), LinkError> {
        match self.is_duplex {
            true => self.gathered(neighbours, to)?.begin_control(frame),
            false => neighbours.get(to).send_control(frame).await,
        }
    }

    /// Sends a flit; the transmission may be in progress afterwards.
    pub(super) async fn flit(
        &mut self,
        neighbours: &mut Neighbours,
        to: PeId,
        flit: Outgoing<'_>,
    ) -> Result<SendProgress, LinkError> {
        if !self.is_duplex {
            neighbours.get(to).send_frame(flit).await?;
            return Ok(SendProgress::Whole);
        }
        if self.gathered(neighbours, to)?.begin_frame(flit)? {
            return Ok(SendProgress::Whole);
        }
        self.in_progress.push(to);
        Ok(SendProgress::Begun)
    }

    /// Returns the connection to a neighbour, where consecutive short frames are coalesced. Writes those
    /// that were coalesced for another neighbour.
    fn gathered<'a>(
        &mut self,
        neighbours: &'a mut Neighbours,
        to: PeId,
    ) -> Result<&'a mut Link, LinkError> {
        if self.gathering != Some(to) {
            self.flush(neighbours)?;
            self.gathering = Some(to);
            neighbours.get(to).gather();
        }
        Ok(neighbours.get(to))
    }

    /// Writes the coalesced frames.
    pub(super) fn flush(&mut self, neighbours: &mut Neighbours) -> Result<(), LinkError> {
        let to = self.gathering.take();
        to.map_or(Ok(()), |to| neighbours.get(to).flush_gathered())
    }
}
