//! What crosses an edge, and what a PE's role says of it: messages, control items, and what
//! becomes of them. Words only; who says them when is the operations' business
//! ([`crate::ops`]).

mod violation;

use std::fmt;

use smallvec::{SmallVec, smallvec};

use crate::schedule::certification::Certificate;
use crate::{MessageId, PeId, Tree};

pub use violation::Violation;

/// Neighbours that a message goes to. Nearly always one, for which nothing is allocated: short
/// messages would feel it.
pub type Hops = SmallVec<[PeId; 4]>;

/// Where a message ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    /// At this PE.
    One(PeId),
    /// At every PE but its source.
    Others,
}

impl Destination {
    /// The one PE, if it is one.
    pub fn one(self) -> Option<PeId> {
        match self {
            Destination::One(pe) => Some(pe),
            Destination::Others => None,
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::One(pe) => pe.fmt(f),
            Destination::Others => f.write_str("all others"),
        }
    }
}

/// A message of a round, whose length is another matter: which it is, where it starts and where
/// it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// Which it is.
    pub id: MessageId,
    /// Where it starts.
    pub source: PeId,
    /// Where it ends.
    pub destination: Destination,
}

impl Address {
    /// Whether it ends at this PE, at least.
    pub fn is_for(&self, pe: PeId) -> bool {
        match self.destination {
            Destination::One(one) => pe == one,
            Destination::Others => pe != self.source,
        }
    }

    /// The PEs at which it ends, of those on a tree.
    pub fn ends(self, tree: &Tree) -> impl Iterator<Item = PeId> {
        let of_one = self.destination.one();
        let others = of_one.is_none().then(|| tree.pes());
        let others = others.into_iter().flatten();
        let others = others.filter(move |pe| *pe != self.source);
        of_one.into_iter().chain(others)
    }

    /// The PE that the message is named after: where the root is one of two ends, the other one,
    /// or else its source.
    pub fn pe(&self) -> PeId {
        match self.destination {
            Destination::One(pe) if self.id == pe.into() => pe,
            _ => self.source,
        }
    }
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    /// Which it is of its round.
    pub id: MessageId,
    /// Where it starts.
    pub source: PeId,
    /// Where it ends.
    pub destination: Destination,
    /// Its whole length.
    pub bytes: u64,
}

impl Message {
    /// One between P0 and one other PE, of a scatter or a gather.
    pub fn between(source: PeId, destination: PeId, bytes: u64) -> Message {
        Message {
            id: source.max(destination).into(),
            source,
            destination: Destination::One(destination),
            bytes,
        }
    }

    /// The message without its length.
    pub fn address(&self) -> Address {
        Address {
            id: self.id,
            source: self.source,
            destination: self.destination,
        }
    }

    /// Whether it ends at this PE, at least.
    pub fn is_for(&self, pe: PeId) -> bool {
        self.address().is_for(pe)
    }

    /// The PE that it is named after.
    pub fn pe(&self) -> PeId {
        self.address().pe()
    }
}

/// A crossing of a static schedule: flits of a message go over one edge, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leg {
    /// Which message.
    pub message: MessageId,
    /// The first of these flits in the message, counted from 0.
    pub offset: u64,
    /// How many.
    pub flits: u64,
    /// Its sender.
    pub from: PeId,
    /// Its receiver.
    pub to: PeId,
    /// The step in which the first of them crosses.
    pub first_step: u64,
    /// Steps from one to the next, at least 1.
    pub every: u64,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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
        /// The first PE on its way; of a message that starts here also several, each flit to one
        /// after the other.
        to: Hops,
        /// The message.
        message: Message,
    },
    /// Send a part of a message of which this PE is the source, or of which it holds so much, or
    /// will. The parts of a message go to one neighbour in order.
    Part {
        /// The neighbour.
        to: PeId,
        /// The message.
        message: Message,
        /// The first of these bytes in the message, and the one behind them.
        bytes: [u64; 2],
        /// No later part that goes from here has any byte ahead of this one, in the message;
        /// [`u64::MAX`] where this is the last one.
        later_from: u64,
    },
}

/// What becomes of an incoming message: any of these together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// It is for this PE.
    pub deliver: bool,
    /// All of it goes on to these neighbours through the send port, flit by flit, each flit to
    /// one after the other.
    pub relay: Hops,
    /// It is kept until the PE sends it on as a message: by operations whose PEs send and receive
    /// at once, and by what users know from elsewhere.
    pub hold: bool,
    /// How far it comes now, in bytes from its start, where the rest comes later as a part of its
    /// own; `None` for all of it.
    pub until: Option<u64>,
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
            relay: smallvec![to],
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
