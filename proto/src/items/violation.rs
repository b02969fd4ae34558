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
        from: PeId,
        item: Control,
        phase: &'static str,
    },
    /// A message, or a flit of one, that is not allowed.
    #[error("{from} {}", fault.shown(message))]
    Message {
        from: PeId,
        message: Message,
        /// The rule that it breaks.
        fault: MessageFault,
    },
}

/// The rule that a message breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageFault {
    /// The message began before the current one had ended.
    Interrupted,
    /// The neighbour is not the sender of the message now.
    OutOfTurn,
    /// The message has no route from here.
    NoRoute,
    /// The message has already arrived in this round.
    Repeated,
    /// A flit before the last one has a digest, or the last one has none.
    Torn,
    /// The message is null, and must not be sent.
    Empty,
    /// There are more flits than the neighbour certified, or more messages than expected.
    Overrun,
}

impl MessageFault {
    /// Returns the violation of a neighbour that sends the message.
    pub fn by(self, from: PeId, message: Message) -> Violation {
        Violation::Message {
            from,
            message,
            fault: self,
        }
    }

    fn shown(self, message: &Message) -> String {
        let pe = message.pe();
        match self {
            MessageFault::Interrupted => format!("began the message of {pe} inside another one"),
            MessageFault::OutOfTurn => {
                format!("sent the message of {pe}, which is not expected now")
            }
            MessageFault::NoRoute => format!(
                "sent a message from {} to {}, whose route does not include this PE",
                message.source, message.destination
            ),
            MessageFault::Repeated => format!("sent the message of {pe} again"),
            MessageFault::Torn => {
                format!("sent the message of {pe} in flits that contradict its digest")
            }
            MessageFault::Empty => format!("sent an empty message of {pe}"),
            MessageFault::Overrun => format!("sent more than it announced: the message of {pe}"),
        }
    }
}
