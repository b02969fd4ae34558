//! The protocol errors that end a round.

use std::fmt::Debug;

use thiserror::Error;

use crate::items::{Message, Violation};
use crate::wire::WireError;
use crate::{PeId, RoundId};

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
