//! What a PE's ports did in a round and when, and how long its files took: the stuff of space-time diagrams.
//! The node records them on request, the prediction makes them, pictures show both.

use crate::PeId;
use crate::items::{Control, Message};

/// A port that was busy with one item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Which of the PE's ports.
    pub port: Port,
    /// Who is at the other end.
    pub peer: PeId,
    /// With what.
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
    /// What goes out.
    Send,
    /// What comes in.
    Receive,
    /// What has come and is written, from its last byte until it is durable and visible.
    Files,
}

/// What a port was busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanItem {
    /// M_i, all of its flits.
    Message(PeId),
    /// A wakeup call.
    Wakeup,
    /// The synchronization token.
    Token,
    /// A certificate.
    Certificate,
    /// A TRANSMIT AFTER order.
    Order,
    /// A receipt.
    Receipt,
}

impl From<Message> for SpanItem {
    fn from(message: Message) -> SpanItem {
        SpanItem::Message(message.pe())
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
