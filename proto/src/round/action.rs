//! The actions of a driver, the events that an observer receives, and the errors that end a round.

use std::fmt::Debug;
use std::ops::Range;

use thiserror::Error;

use crate::items::{Control, Message, Packing, Violation};
use crate::wire::WireError;
use crate::{PeId, RoundId, Time};

/// Consecutive bytes of a message: the payload of a flit, or of several in a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub message: Message,
    /// The offset of the first byte.
    pub offset: u64,
    pub bytes: u64,
}

impl Piece {
    /// Returns the offset behind the last byte.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }

    /// Returns whether the message ends here.
    pub fn is_last(&self) -> bool {
        self.end() == self.message.bytes
    }
}

/// The next action of a driver. It has to be done and reported before the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    SendControl {
        to: PeId,
        item: Control,
    },
    /// Send the next flit of a message that starts here, with the prefix from
    /// [`Round::put_prefix`](super::Round::put_prefix).
    SendFlit {
        to: PeId,
        piece: Piece,
        /// The packets of the flit, or of the flits if several are sent at a time.
        packing: Packing,
    },
    /// Send the last flit again, to one more neighbour, without changes.
    SendAgain {
        to: PeId,
        piece: Piece,
    },
    /// Send the next frame of a held message without changes.
    SendHeld {
        to: PeId,
        piece: Piece,
        packing: Packing,
        /// Offset before which no byte of the message is needed after this action; [`u64::MAX`] if
        /// none is needed at all.
        later_from: u64,
    },
    /// Forward the frame in hand without changes.
    Forward {
        from: PeId,
        to: PeId,
        piece: Piece,
    },
    /// Store the payload of the frame in hand, the next one of a message for this PE.
    Store {
        from: PeId,
        message: Message,
        /// The payload's offset in the message.
        offset: u64,
        /// The payload's range in the frame's body.
        payload: Range<usize>,
    },
    /// Hold the frame in hand until the message is sent.
    Hold {
        from: PeId,
        message: Message,
    },
    /// Free the frame in hand, to make room for the next one.
    Drop {
        from: PeId,
    },
    /// Make a message for this PE, which has arrived and is verified, durable and visible. The
    /// action is done as soon as that is in progress;
    /// [`Round::handle_delivered`](super::Round::handle_delivered) reports the end.
    Commit {
        message: Message,
    },
    /// Do nothing: a message is complete, and frames of other neighbours had to wait for it. If PEs
    /// send and receive at the same time, this is only for own messages that continue later or use
    /// several ports.
    Turn {
        /// The sender of the message; `None` for an own message.
        from: Option<PeId>,
    },
    /// Wait for a frame of a neighbour that the round listens to, for a message to become visible,
    /// for transmissions in progress, or for a time; a time that is now only checks for these
    /// events.
    Wait {
        /// The latest time of the next poll.
        until: Option<Time>,
    },
    /// This PE's part of the round is over.
    Finished,
}

impl Action {
    /// Returns the neighbour to which this action sends a flit that it does not forward.
    pub fn sends_to(&self) -> Option<PeId> {
        match self {
            Action::SendFlit { to, .. }
            | Action::SendAgain { to, .. }
            | Action::SendHeld { to, .. } => Some(*to),
            _ => None,
        }
    }
}

/// A frame without bytes, for predictions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sized {
    Control(Control),
    /// The next flits of a message.
    Flits(Piece),
}

/// An observer of the events of a round, such as a node's counters.
pub trait Observer {
    /// Reports the first event of the round.
    fn begun(&self) {}
    /// Reports that the PE's part of the round is over.
    fn finished(&self) {}
    /// Reports that `bytes` bytes of messages have left their source or reached their destination
    /// here.
    fn moved(&self, _bytes: u64) {}
    /// Reports a frame of an earlier round.
    fn late(&self) {}
    /// Reports the number of flits of other PEs' messages in memory.
    fn holds(&self, _flits: u64) {}
    /// Reports when the PE's own message was due, and when it began.
    fn started(&self, _due: Time, _began: Time) {}
}

impl Observer for () {}

/// Maximum number of characters of a frame's description in an error.
const LONGEST: usize = 160;

/// A violation of the protocol, or a damaged message.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// Bytes that are not a valid frame.
    #[error("from {from}: {error}")]
    Wire { from: PeId, error: WireError },
    #[error(transparent)]
    Violation(#[from] Violation),
    /// A frame that is not allowed in this round.
    #[error("{from} sent {what} in round {round}")]
    OutOfPlace {
        from: PeId,
        what: String,
        round: RoundId,
    },
    /// A message that differs from what its source sent.
    #[error("the message of {} is damaged: {what}", message.pe())]
    Damaged {
        message: Message,
        /// The difference.
        what: String,
    },
    /// A prediction of the round that another thread has cancelled.
    #[error("the prediction of the round was given up")]
    GivenUp,
}

impl ProtocolError {
    pub(super) fn out_of_place(from: PeId, what: &dyn Debug, round: RoundId) -> ProtocolError {
        let what = format!("{what:?}").chars().take(LONGEST).collect();
        ProtocolError::OutOfPlace { from, what, round }
    }

    /// Returns the kind of the fault for counters.
    pub fn kind(&self) -> &'static str {
        match self {
            ProtocolError::Wire { .. } => "neighbour",
            ProtocolError::Violation(_) | ProtocolError::OutOfPlace { .. } => "protocol",
            ProtocolError::Damaged { .. } => "damaged",
            ProtocolError::GivenUp => "given up",
        }
    }

    /// Returns the neighbour that caused the fault.
    pub fn peer(&self) -> Option<PeId> {
        match self {
            ProtocolError::Wire { from, .. } | ProtocolError::OutOfPlace { from, .. } => {
                Some(*from)
            }
            ProtocolError::Violation(_)
            | ProtocolError::Damaged { .. }
            | ProtocolError::GivenUp => None,
        }
    }
}
