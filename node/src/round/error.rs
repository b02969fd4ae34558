//! Why a round cannot go on, as one PE sees it.

use std::path::PathBuf;

use flitcast_proto::PeId;
use flitcast_proto::items::Message;
use flitcast_proto::round::RoundFault;
use thiserror::Error;

use crate::link::LinkError;
use crate::payload::PayloadError;

/// Why a round cannot go on.
#[derive(Debug, Error)]
pub enum RoundError {
    /// A neighbour is gone, or speaks nonsense.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// What came breaks the protocol, or is not what was sent.
    #[error(transparent)]
    Fault(#[from] RoundFault),
    /// Files cannot be read or written.
    #[error("{source} (the message of {})", message.pe())]
    Payload {
        /// Of which message.
        message: Message,
        /// Why.
        source: PayloadError,
    },
    /// What is held for others can be kept nowhere.
    #[error("what is to be sent on cannot be held in {}: {source}", folder.display())]
    Held {
        /// Where.
        folder: PathBuf,
        /// Why not.
        source: std::io::Error,
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
            RoundError::Fault(fault) => fault.kind(),
            RoundError::Payload { .. } => "payload",
            RoundError::Held { .. } | RoundError::Alarm(_) => "system",
        }
    }

    /// The neighbour at fault, where there is one.
    pub fn peer(&self) -> Option<PeId> {
        match self {
            RoundError::Link(error) => Some(error.peer()),
            RoundError::Fault(fault) => fault.peer(),
            RoundError::Payload { .. } | RoundError::Held { .. } | RoundError::Alarm(_) => None,
        }
    }
}
