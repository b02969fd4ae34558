//! Why a PE gives a round up.

use std::fmt;

use flitcast_proto::PeId;
use flitcast_proto::pe::{Message, Violation};
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::{LENGTH_BYTES, WireError};

use super::wire::Wire;

/// Of a reason that is passed on: its frame fits into the shortest flit's.
const REASON_CHARS: usize = 120;

/// Why a PE gives a round up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A connection ended between frames.
    Closed {
        /// The neighbour.
        peer: PeId,
    },
    /// A connection ended inside a frame.
    Truncated {
        /// The neighbour.
        peer: PeId,
        /// Bytes that came.
        got: usize,
        /// Bytes that the frame has.
        expected: usize,
    },
    /// Nothing was heard for too long.
    Silent {
        /// The neighbour.
        peer: PeId,
    },
    /// Bytes that are no frame.
    Wire {
        /// The neighbour.
        peer: PeId,
        /// What is wrong with them.
        error: WireError,
    },
    /// A neighbour broke the protocol.
    Violation {
        /// The neighbour.
        peer: PeId,
        /// How.
        violation: Violation,
    },
    /// A frame that has no place.
    OutOfPlace {
        /// The neighbour.
        peer: PeId,
        /// What it is.
        what: String,
    },
    /// A message is not what its source sent.
    Damaged {
        /// Which.
        message: Message,
    },
    /// A neighbour gave the round up and said why.
    Aborted {
        /// The neighbour.
        peer: PeId,
        /// The first cause.
        reason: String,
    },
    /// The state machine wants to be asked again at once, for ever.
    Spins,
}

impl Cause {
    pub(super) fn violated(violation: Violation) -> Cause {
        let peer = violation.peer();
        Cause::Violation { peer, violation }
    }

    pub(super) fn out_of_place(peer: PeId, what: &dyn fmt::Debug) -> Cause {
        let what = format!("{what:?}").chars().take(REASON_CHARS).collect();
        Cause::OutOfPlace { peer, what }
    }

    /// The neighbour that is blamed.
    pub fn peer(&self) -> Option<PeId> {
        match self {
            Cause::Closed { peer }
            | Cause::Truncated { peer, .. }
            | Cause::Silent { peer }
            | Cause::Wire { peer, .. }
            | Cause::Violation { peer, .. }
            | Cause::OutOfPlace { peer, .. }
            | Cause::Aborted { peer, .. } => Some(*peer),
            Cause::Damaged { .. } | Cause::Spins => None,
        }
    }

    /// The first cause, as `pe` passes it on.
    pub fn reason(&self, pe: PeId) -> String {
        match self {
            Cause::Aborted { reason, .. } => reason.clone(),
            own => format!("{pe}: {own}").chars().take(REASON_CHARS).collect(),
        }
    }

    /// A connection has ended. A neighbour that gives a round up says why before it
    /// closes, behind what this PE may not have read yet.
    pub(super) fn of_end(peer: PeId, wire: &mut Wire, frame_limit: usize) -> Cause {
        while let Some(Ok(frame)) = wire.read_frame(frame_limit) {
            if let Ok(EdgeFrame::Abort { reason, .. }) = EdgeFrame::parse(&frame[LENGTH_BYTES..]) {
                return Cause::Aborted { peer, reason };
            }
        }
        match wire.torn() {
            Some((got, expected)) => Cause::Truncated {
                peer,
                got,
                expected,
            },
            None => Cause::Closed { peer },
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Closed { peer } => write!(f, "{peer} closed the connection"),
            Cause::Truncated {
                peer,
                got,
                expected,
            } => write!(
                f,
                "{peer} closed the connection inside a frame, {got} of {expected} bytes"
            ),
            Cause::Silent { peer } => write!(f, "{peer} was silent for too long"),
            Cause::Wire { peer, error } => write!(f, "from {peer}: {error}"),
            Cause::Violation { violation, .. } => violation.fmt(f),
            Cause::OutOfPlace { peer, what } => write!(f, "{peer} sent {what}"),
            Cause::Damaged { message } => write!(f, "the message of {} is damaged", message.pe()),
            Cause::Aborted { peer, reason } => write!(f, "{peer} gave the round up: {reason}"),
            Cause::Spins => write!(f, "the state machine is due for ever"),
        }
    }
}
