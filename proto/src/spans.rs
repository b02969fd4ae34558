//! The activity of a PE's ports and files in a round, over time, for space-time diagrams. The node
//! records it on request, the prediction computes it, pictures show both.

use crate::items::{Control, Message};
use crate::{MessageId, PeId};

/// A port that was busy with one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which of the PE's ports.
    pub port: Port,
    /// The PE at the other end.
    pub peer: PeId,
    pub item: SpanItem,
    /// From when, in nanoseconds. The node's spans are on its host's monotonic
    /// clock, the prediction's count from the root's trigger.
    pub begin_ns: u64,
    /// Until when; not before `begin_ns`.
    pub end_ns: u64,
}

/// One of a PE's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    Send,
    Receive,
    /// Writing, from the last received byte until the message is durable and visible.
    Files,
}

/// The item that occupied a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanItem {
    /// All flits of a message, or of a part of one.
    Message(MessageId),
    Wakeup,
    Token,
    Certificate,
    /// A TRANSMIT AFTER order.
    Order,
    Receipt,
}

impl From<Message> for SpanItem {
    fn from(message: Message) -> SpanItem {
        SpanItem::Message(message.id)
    }
}

impl From<Control> for SpanItem {
    fn from(item: Control) -> SpanItem {
        match item {
            Control::Wakeup { .. } => SpanItem::Wakeup,
            Control::Token => SpanItem::Token,
            Control::Certificate(_) => SpanItem::Certificate,
            Control::Order { .. } => SpanItem::Order,
            Control::Receipt => SpanItem::Receipt,
        }
    }
}
