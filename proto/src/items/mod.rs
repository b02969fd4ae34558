//! Messages, control items, and routes: the items that cross an edge, and the decisions of a PE's
//! role about them. [`crate::ops`] contains the roles.

use std::fmt;

use smallvec::{SmallVec, smallvec};
use thiserror::Error;

use crate::schedule::certification::Certificate;
use crate::{MessageId, PeId, Tree};

/// The neighbours to which a message goes. It is nearly always one, without an allocation, which
/// short messages would notice.
pub type Hops = SmallVec<[PeId; 4]>;

/// The destination of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Destination {
    One(PeId),
    /// At every PE but its source.
    Others,
}

impl Destination {
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

/// A message of a round without its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    pub id: MessageId,
    pub source: PeId,
    pub destination: Destination,
}

impl Address {
    /// Returns whether it ends at this PE, at least.
    pub fn is_for(&self, pe: PeId) -> bool {
        match self.destination {
            Destination::One(one) => pe == one,
            Destination::Others => pe != self.source,
        }
    }

    /// Returns the PEs at which it ends, of those on a tree.
    pub fn ends(self, tree: &Tree) -> impl Iterator<Item = PeId> {
        let of_one = self.destination.one();
        let others = of_one.is_none().then(|| tree.pes());
        let others = others.into_iter().flatten();
        let others = others.filter(move |pe| *pe != self.source);
        of_one.into_iter().chain(others)
    }

    /// Returns the PE that gives the message its number: the end that is not the root, or else the
    /// source.
    pub fn pe(&self) -> PeId {
        match self.destination {
            Destination::One(pe) if self.id == pe.into() => pe,
            _ => self.source,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Message {
    pub id: MessageId,
    pub source: PeId,
    pub destination: Destination,
    pub bytes: u64,
}

impl Message {
    /// Creates a message between P0 and one other PE, of a scatter or a gather.
    pub fn between(source: PeId, destination: PeId, bytes: u64) -> Message {
        Message {
            id: source.max(destination).into(),
            source,
            destination: Destination::One(destination),
            bytes,
        }
    }

    pub fn address(&self) -> Address {
        Address {
            id: self.id,
            source: self.source,
            destination: self.destination,
        }
    }

    pub fn is_for(&self, pe: PeId) -> bool {
        self.address().is_for(pe)
    }

    /// Returns the PE that gives the message its number.
    pub fn pe(&self) -> PeId {
        self.address().pe()
    }
}

/// A crossing of a static schedule: flits of a message go over one edge, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledHop {
    pub message: MessageId,
    /// The first of these flits in the message, counted from 0.
    pub offset: u64,
    pub flits: u64,
    pub from: PeId,
    pub to: PeId,
    /// The step in which the first flit crosses.
    pub first_step: u64,
    /// Steps from one flit to the next, at least 1.
    pub every: u64,
    /// The packets of these flits.
    pub packing: Packing,
}

/// The division of a crossing into packets. A packet occupies the ports for a link's set-up time in
/// addition to its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// Each flit is a packet.
    #[default]
    Flits,
    /// All flits are one packet, which begins with them. A PE sends it when all of it is there.
    Begins,
    /// All flits belong to the packet of the sender's last crossing to the same neighbour.
    Joins,
}

impl Packing {
    /// Returns the number of packets that begin with `flits` flits.
    pub fn packets(self, flits: u64) -> u64 {
        match self {
            Packing::Flits => flits,
            Packing::Begins => 1,
            Packing::Joins => 0,
        }
    }

    /// Returns the packing of the flits that follow the first ones.
    pub fn rest(self) -> Packing {
        match self {
            Packing::Begins => Packing::Joins,
            same => same,
        }
    }
}

/// A control item: one flit on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Control {
    /// Shoulder-Tap: the first flit should reach the sender of the call after at least this number
    /// of ticks.
    Wakeup {
        /// s, at least 1.
        after: u64,
    },
    Token,
    Certificate(Certificate),
    /// TRANSMIT AFTER s: the first flit should reach the sender of the order after exactly this
    /// number of ticks.
    Order {
        /// s, at least 1.
        after: u64,
    },
    /// Everything on the sender's side is delivered. Not an item of the papers' model: it follows
    /// the data and takes no step.
    Receipt,
}

impl Control {
    pub fn name(self) -> &'static str {
        match self {
            Control::Wakeup { .. } => "wakeup",
            Control::Token => "token",
            Control::Certificate(_) => "certificate",
            Control::Order { .. } => "order",
            Control::Receipt => "receipt",
        }
    }
}

/// The next action of the send port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// Send a control item to a neighbour.
    Control { to: PeId, item: Control },
    /// Send a message of which this PE is the source, or which it holds.
    Message {
        /// The first PE on its way; several for a message that starts here, each flit to one after
        /// the other.
        to: Hops,
        message: Message,
    },
    /// Send a part of a message of which this PE is the source, or of which it holds the part, or
    /// will. The parts of a message go to one neighbour in order.
    Part {
        to: PeId,
        message: Message,
        /// The first byte of the part in the message, and the byte after the last.
        bytes: [u64; 2],
        /// Offset before which no later part from here needs any byte; [`u64::MAX`] if this is the
        /// last part.
        later_from: u64,
        packing: Packing,
    },
}

impl Transmit {
    /// Returns the transmission of a message to one neighbour.
    pub fn message(to: PeId, message: Message) -> Transmit {
        let to = smallvec![to];
        Transmit::Message { to, message }
    }
}

/// The routing of an incoming message: any combination of these.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Whether this PE is a destination.
    pub deliver: bool,
    /// The neighbours to which all of it is forwarded through the send port, flit by flit, each
    /// flit to one after the other.
    pub relay: Hops,
    /// Whether it is stored until the PE forwards it as a message: for operations whose PEs send
    /// and receive at once, and for baselines.
    pub hold: bool,
    /// The end of the part that arrives now, in bytes from the message's start, if the rest arrives
    /// later as a separate part; `None` for all of it.
    pub until: Option<u64>,
}

impl Route {
    pub fn deliver() -> Route {
        Route {
            deliver: true,
            ..Route::default()
        }
    }

    pub fn relay(to: PeId) -> Route {
        Route {
            relay: smallvec![to],
            ..Route::default()
        }
    }

    /// Returns a route for a message that is stored.
    pub fn hold() -> Route {
        Route {
            hold: true,
            ..Route::default()
        }
    }

    /// Returns whether any of it is forwarded at once.
    #[inline]
    pub fn relays(&self) -> bool {
        !self.relay.is_empty()
    }
}

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
