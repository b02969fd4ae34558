//! The errors that end a round on one PE.

use std::path::PathBuf;

use flitcast_proto::PeId;
use flitcast_proto::items::Message;
use flitcast_proto::round::ProtocolError;
use thiserror::Error;

use crate::link::LinkError;
use crate::payload::PayloadError;

/// An error that ends a round.
#[derive(Debug, Error)]
pub enum RoundError {
    /// A neighbour is gone, or has sent invalid data.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A violation of the protocol, or a damaged message.
    #[error(transparent)]
    Fault(#[from] ProtocolError),
    #[error("{source} (the message of {})", message.pe())]
    Payload {
        message: Message,
        source: PayloadError,
    },
    #[error("data to forward cannot be stored in {}: {source}", crate::system::lent::as_named(folder).display())]
    Held {
        folder: PathBuf,
        source: std::io::Error,
    },
    #[error("the timer failed: {0}")]
    Alarm(#[from] std::io::Error),
}

impl RoundError {
    /// Returns the kind of the error for counters.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            RoundError::Link(_) => "neighbour",
            RoundError::Fault(fault) => fault.kind(),
            RoundError::Payload { .. } => "payload",
            RoundError::Held { .. } | RoundError::Alarm(_) => "system",
        }
    }

    /// Returns the neighbour at fault, if there is one.
    pub fn peer(&self) -> Option<PeId> {
        match self {
            RoundError::Link(error) => Some(error.peer()),
            RoundError::Fault(fault) => fault.peer(),
            RoundError::Payload { .. } | RoundError::Held { .. } | RoundError::Alarm(_) => None,
        }
    }
}
