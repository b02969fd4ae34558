//! What a neighbour can do against the protocol.

use thiserror::Error;

use super::{Control, Message};
use crate::PeId;

/// A neighbour broke the protocol; the round cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// A control item that has no place in this phase of this algorithm.
    #[error("{from} sent {item:?}, which has no place {phase}")]
    UnexpectedControl {
        /// The neighbour.
        from: PeId,
        /// The item.
        item: Control,
        /// Where the PE stands in the round.
        phase: &'static str,
    },
    /// A message began before the one under way had ended.
    #[error("{from} began the message of {} inside another one", message.pe())]
    Interrupted {
        /// The neighbour.
        from: PeId,
        /// The message.
        message: Message,
    },
    /// A message from a neighbour whose turn it is not.
    #[error("{from} sent the message of {} out of turn", message.pe())]
    OutOfTurn {
        /// The neighbour.
        from: PeId,
        /// The message.
        message: Message,
    },
    /// A message that has no way on from here.
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
    /// A flit ahead of the last that has a digest, or a last one that has none.
    #[error("{from} sent the message of {} in flits that do not make it up", message.pe())]
    Torn {
        /// The neighbour.
        from: PeId,
        /// The message.
        message: Message,
    },
    /// A null message is not sent.
    #[error("{from} sent an empty message of {}", message.pe())]
    EmptyMessage {
        /// The neighbour.
        from: PeId,
        /// The message.
        message: Message,
    },
    /// More flits than the neighbour certified, or more messages than there are.
    #[error("{from} sent more than it announced: the message of {}", message.pe())]
    Overrun {
        /// The neighbour.
        from: PeId,
        /// The message.
        message: Message,
    },
}

impl Violation {
    /// The neighbour that broke the protocol.
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
