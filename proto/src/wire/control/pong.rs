//! The answer of a PE to a ping, to and from protobuf.

use super::counts::{Counts, parse_counts, put_counts};
use crate::PeId;
use crate::wire::WireError;
use crate::wire::codec::record;
use crate::wire::pb::pong::Doing as Code;

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

impl Doing {
    /// Returns the activity as a number and a PE; the PE is P0 if the activity concerns none.
    #[inline]
    pub fn code(self) -> (i32, PeId) {
        let (code, peer) = match self {
            Doing::Idle => (Code::Idle, PeId::ROOT),
            Doing::Working => (Code::Working, PeId::ROOT),
            Doing::Sending(to) => (Code::Sending, to),
            Doing::Receiving(from) => (Code::Receiving, from),
            Doing::Listening => (Code::Listening, PeId::ROOT),
        };
        (code.into(), peer)
    }

    /// Returns the activity with this number and PE, if there is one: the inverse of [`Doing::code`].
    #[inline]
    pub fn of(code: i32, peer: PeId) -> Option<Doing> {
        Some(match Code::try_from(code).ok()? {
            Code::Idle => Doing::Idle,
            Code::Working => Doing::Working,
            Code::Sending => Doing::Sending(peer),
            Code::Receiving => Doing::Receiving(peer),
            Code::Listening => Doing::Listening,
        })
    }
}

record! {
    Pong = Pong { quiet_ms, files_quiet_ms, unreached }
    put pong {
        doing: pong.doing.code().0,
        peer: pong.doing.code().1.0,
        counts: put_counts(&pong.counts),
    }
    parse pong {
        doing: Doing::of(pong.doing, PeId(pong.peer)).ok_or_else(|| {
            WireError::malformed(format!("{} is nothing a PE does", pong.doing))
        })?,
        counts: parse_counts(pong.counts)?,
    }
}
