//! Violations of the protocol by a neighbour.

use thiserror::Error;

use super::{Control, Message};
use crate::PeId;

/// A violation of the protocol by a neighbour, which ends the round.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// A control item that is not allowed in this phase of this algorithm.
    #[error("{from} sent {item:?}, which is not allowed {phase}")]
    UnexpectedControl {
        /// The neighbour.
        from: PeId,
        /// The item.
        item: Control,
        /// The phase of the round.
        phase: &'static str,
    },
    /// A message that began before the current one had ended.
    #[error("{from} began the message of {} inside another one", message.pe())]
    Interrupted {
        /// The neighbour.
        from: PeId,
        /// The message.
        message: Message,
    },
    /// A message from a neighbour that is not its sender now.
    #[error("{from} sent the message of {}, which is not expected now", message.pe())]
    OutOfTurn {
        /// The neighbour.
        from: PeId,
        /// The message.
        message: Message,
    },
    /// A message without a route from here.
    #[error(
        "{from} sent a message from {} to {}, whose way does not lead through here",
        message.source,
        message.destination
    )]
    NoRoute {
        /// The neighbour.
        from: PeId,
        /// The message.
        message: Message,
    },
    /// A message that came before in this round.
    #[error("{from} sent the message of {} again", message.pe())]
    Repeated {
        /// The neighbour.
        from: PeId,
        /// The message.
        message: Message,
    },
    /// A flit with a digest before the last one, or a last flit without one.
    #[error("{from} sent the message of {} in flits that contradict its digest", message.pe())]
    Torn {
        /// The neighbour.
        from: PeId,
        /// The message.
        message: Message,
    },
    /// A null message, which must not be sent.
    #[error("{from} sent an empty message of {}", message.pe())]
    EmptyMessage {
        /// The neighbour.
        from: PeId,
        /// The message.
        message: Message,
    },
    /// More flits than the neighbour certified, or more messages than expected.
    #[error("{from} sent more than it announced: the message of {}", message.pe())]
    Overrun {
        /// The neighbour.
        from: PeId,
        /// The message.
        message: Message,
    },
}

impl Violation {
    /// Returns the neighbour that broke the protocol.
    pub fn peer(&self) -> PeId {
        match self {
            Violation::UnexpectedControl { from, .. }
            | Violation::Interrupted { from, .. }
            | Violation::OutOfTurn { from, .. }
            | Violation::NoRoute { from, .. }
            | Violation::Repeated { from, .. }
            | Violation::Torn { from, .. }
            | Violation::EmptyMessage { from, .. }
            | Violation::Overrun { from, .. } => *from,
        }
    }
}
