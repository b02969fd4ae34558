//! What crosses an edge, and what a PE's role says of it: messages, control items, and what
//! becomes of them. Words only; who says them when is the operations' business
//! ([`crate::ops`]).

mod violation;

use crate::schedule::certification::Certificate;
use crate::{MessageId, PeId};

pub use violation::Violation;

/// A message: between P0 and one other PE, of `bytes` bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Where it starts.
    pub source: PeId,
    /// Where it ends.
    pub destination: PeId,
    /// Its whole length.
    pub bytes: u64,
}

impl Message {
    /// The PE that the message is named after: M_i goes to or comes from P_i.
    pub fn pe(&self) -> PeId {
        self.source.max(self.destination)
    }

    /// Which message of the round it is.
    pub fn id(&self) -> MessageId {
        self.pe().into()
    }
}

/// A message whose length is not known yet: which it is, where it starts and where it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Which it is.
    pub id: MessageId,
    /// Where it starts.
    pub source: PeId,
    /// Where it ends, at least one PE.
    pub destinations: Vec<PeId>,
}

/// A crossing of a static schedule: a whole message goes over one edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Which message.
    pub message: MessageId,
    /// Its length.
    pub flits: u64,
    /// Its sender.
    pub from: PeId,
    /// Its receiver.
    pub to: PeId,
    /// The step in which its first flit crosses; the others follow without a gap.
    pub first_step: u64,
}

/// A control item: one flit on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// Shoulder-Tap: the first flit is to be with the sender of the call after at least
    /// so many ticks.
    Wakeup {
        /// s, at least 1.
        after: u64,
    },
    /// The synchronization token.
    Token,
    /// A transmission certificate.
    Certificate(Certificate),
    /// TRANSMIT AFTER s: the first flit is to be with the sender of the order after
    /// exactly so many ticks.
    Order {
        /// s, at least 1.
        after: u64,
    },
    /// Everything of the sender's side is delivered. Not an item of the papers'
    /// model: it follows the data and takes no step.
    Receipt,
}

/// What the send port does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// Send a control item to a neighbour.
    Control {
        /// The neighbour.
        to: PeId,
        /// The item.
        item: Control,
    },
    /// Send a message of which this PE is the source, or which it holds.
    Message {
        /// The first PE on its way.
        to: PeId,
        /// The message.
        message: Message,
    },
}

/// What becomes of an incoming message: any of these together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// It is for this PE.
    pub deliver: bool,
    /// All of it goes on to these neighbours through the send port, flit by flit, each flit to
    /// one after the other.
    pub relay: Vec<PeId>,
    /// It is kept until the PE sends it on as a message. Of today's operations, only what users
    /// know from elsewhere does this.
    pub hold: bool,
}

impl Route {
    /// It is for this PE alone.
    pub fn deliver() -> Route {
        Route {
            deliver: true,
            ..Route::default()
        }
    }

    /// It goes on to one neighbour.
    pub fn relay(to: PeId) -> Route {
        Route {
            relay: vec![to],
            ..Route::default()
        }
    }

    /// It is held.
    pub fn hold() -> Route {
        Route {
            hold: true,
            ..Route::default()
        }
    }

    /// Whether any of it goes on at once.
    pub fn relays(&self) -> bool {
        !self.relay.is_empty()
    }
}
