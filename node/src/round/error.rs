//! Why a round cannot go on, as one PE sees it.

use flitcast_proto::pe::{Message, Violation};
use flitcast_proto::{PeId, RoundId};
use thiserror::Error;

use crate::link::LinkError;
use crate::payload::PayloadError;

/// Why a round cannot go on.
#[derive(Debug, Error)]
pub enum RoundError {
    /// A neighbour is gone, or speaks nonsense.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A neighbour broke the protocol.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// Files cannot be read or written.
    #[error("{source} (the message of {})", message.pe())]
    Payload {
        /// Of which message.
        message: Message,
        /// Why.
        source: PayloadError,
    },
    /// A message is not what its source sent.
    #[error("the message of {} is damaged: {what}", message.pe())]
    Damaged {
        /// Which message.
        message: Message,
        /// How that shows.
        what: String,
    },
    /// A frame that has no place in this round.
    #[error("{from} sent {what} in round {round}")]
    OutOfPlace {
        /// The neighbour.
        from: PeId,
        /// What it sent.
        what: String,
        /// The round.
        round: RoundId,
    },
    /// The clock failed.
    #[error("the alarm clock failed: {0}")]
    Alarm(#[from] std::io::Error),
}

impl RoundError {
    /// Which kind of error it is, for who counts them.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            RoundError::Link(_) => "neighbour",
            RoundError::Violation(_) | RoundError::OutOfPlace { .. } => "protocol",
            RoundError::Payload { .. } => "payload",
            RoundError::Damaged { .. } => "damaged",
            RoundError::Alarm(_) => "system",
        }
    }

    /// The neighbour at fault, where there is one.
    pub fn peer(&self) -> Option<PeId> {
        match self {
            RoundError::Link(error) => Some(error.peer()),
            RoundError::OutOfPlace { from, .. } => Some(*from),
            _ => None,
        }
    }
}
