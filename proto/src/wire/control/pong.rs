//! The answer of a PE to a ping, to and from protobuf.

use super::counts::{Counts, parse_counts, put_counts};
use crate::PeId;
use crate::wire::{WireError, pb};

/// Sign of life of a PE, with its current activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pong {
    /// Time since the PE last read a byte from an edge or wrote one to it.
    pub quiet_ms: u64,
    /// Time since the PE last finished an entry of a message on its disk, or found one there to
    /// send.
    pub files_quiet_ms: u64,
    /// Current activity.
    pub doing: Doing,
    /// Neighbours whose hosts do not acknowledge retransmitted data; empty unless requested.
    pub unreached: Vec<PeId>,
    /// The counts so far.
    pub counts: Counts,
}

/// Activity of a PE, as far as it concerns other PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// There is no round, or the PE's part of it has ended.
    Idle,
    /// The PE is working, or waits for its disk or for a time.
    Working,
    /// The PE waits until this neighbour accepts bytes.
    Sending(PeId),
    /// The PE waits for the rest of a message from this neighbour.
    Receiving(PeId),
    /// The PE waits for the next message of any neighbour.
    Listening,
}

impl Pong {
    /// Returns the answer as protobuf.
    pub(super) fn put(self) -> pb::Pong {
        use pb::pong::Doing as Code;
        let (doing, peer) = match self.doing {
            Doing::Idle => (Code::Idle, PeId::ROOT),
            Doing::Working => (Code::Working, PeId::ROOT),
            Doing::Sending(to) => (Code::Sending, to),
            Doing::Receiving(from) => (Code::Receiving, from),
            Doing::Listening => (Code::Listening, PeId::ROOT),
        };
        pb::Pong {
            quiet_ms: self.quiet_ms,
            files_quiet_ms: self.files_quiet_ms,
            doing: doing as i32,
            peer: peer.0,
            unreached: self.unreached.into_iter().map(|pe| pe.0).collect(),
            counts: put_counts(self.counts),
        }
    }

    /// Parses an answer.
    pub(super) fn parse(pong: pb::Pong) -> Result<Pong, WireError> {
        use pb::pong::Doing as Code;
        let peer = PeId(pong.peer);
        let doing = match Code::try_from(pong.doing) {
            Ok(Code::Idle) => Doing::Idle,
            Ok(Code::Working) => Doing::Working,
            Ok(Code::Sending) => Doing::Sending(peer),
            Ok(Code::Receiving) => Doing::Receiving(peer),
            Ok(Code::Listening) => Doing::Listening,
            Err(_) => {
                let code = pong.doing;
                return Err(WireError::malformed(format!("{code} is nothing a PE does")));
            }
        };
        Ok(Pong {
            quiet_ms: pong.quiet_ms,
            files_quiet_ms: pong.files_quiet_ms,
            doing,
            unreached: pong.unreached.into_iter().map(PeId).collect(),
            counts: parse_counts(pong.counts)?,
        })
    }
}
