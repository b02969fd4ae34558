//! The state machine of one PE in one round, without I/O.
//!
//! A driver tells it what happened (`handle_*`, with the time) and asks it what
//! to do (`poll_*`). It has one send port and one receive port. The driver moves
//! one item at a time through the send port: what [`Pe::poll_transmit`] returns,
//! or the relay that [`Pe::handle_head`] decided, until [`Pe::handle_sent`]. It
//! takes flits only from neighbours that [`Pe::listens_to`] admits.
//!
//! The machine orders and routes; it never sees a payload byte. What a tick is, is
//! told beforehand ([`Pace`]): a step in the simulator, a nanosecond on real links.

mod certification;
mod combining;
mod linear;
mod orders;
mod receipts;
mod scatter;
mod shoulder_tap;
mod violation;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::schedule::certification::{Certificate, Sync};
use crate::schedule::pace::{Pace, Timing};
use crate::schedule::scatter::decreasing_tail;
use crate::{PeId, Time, Tree};

pub use violation::Violation;

/// What a round does and by which algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Scatter, farthest destination first.
    Scatter,
    /// Gather by Shoulder-Tap; the tree must be a path.
    ShoulderTap,
    /// Gather by Transmission-Certification.
    Certification(Sync),
    /// Gather as users know it, to measure against; the tree must be a star: P0 asks
    /// one PE after the other, with so many requests under way.
    LinearGather {
        /// At least 1.
        window: u32,
    },
    /// Gather as users know it: each PE holds all that its subtree sends before it
    /// sends it on.
    CombiningGather,
    /// Scatter as users know it: each PE holds all that its subtree gets before it
    /// sends it on.
    CombiningScatter,
}

impl Operation {
    /// Whether data flows from P0 to the others.
    pub fn is_scatter(self) -> bool {
        matches!(self, Operation::Scatter | Operation::CombiningScatter)
    }

    /// Whether PEs are told when to transmit, so that it matters how they obey.
    pub fn gives_orders(self) -> bool {
        matches!(self, Operation::ShoulderTap | Operation::Certification(_))
    }
}

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

/// What becomes of an incoming message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// It is for this PE.
    Deliver,
    /// All of it goes on through the send port, flit by flit.
    Relay {
        /// The next PE on its way.
        to: PeId,
    },
    /// It is kept, until [`Pe::poll_transmit`] sends it on as a message. Only what users
    /// know from elsewhere does this.
    Hold,
}

/// What a PE is told of a round beforehand.
#[derive(Clone, Debug)]
pub struct Brief {
    /// What the round does.
    pub operation: Operation,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// What a tick is, and how orders are obeyed.
    pub pace: Pace,
    /// The nonnull messages this PE is the source of, in the order in which they
    /// go: P0's schedule in a scatter, its own message for another PE in a gather.
    pub sends: Vec<Message>,
    /// Nonnull messages of this PE's subtree, its own included. Only the end of
    /// the round is told by it, never the schedule.
    pub subtree_messages: u64,
    /// The same for each child, in index order.
    pub child_messages: Vec<u64>,
}

impl Brief {
    /// The order in which P0 scatters the nonnull messages, `bytes[i]` being M_i's
    /// length.
    fn scatter_order(
        tree: &Tree,
        operation: Operation,
        bytes: &[u64],
        timing: &Timing,
    ) -> Vec<PeId> {
        let mut order = match operation {
            Operation::CombiningScatter => combining::block_order(tree),
            _ => decreasing_tail(tree, bytes, timing),
        };
        order.retain(|pe| bytes[pe.index()] > 0);
        order
    }

    /// The briefs of all PEs of a round, by PE index, `bytes[i]` being M_i's length, which
    /// is 0 where P_i is absent. Who is absent is told of nothing.
    pub fn all(tree: &Tree, operation: Operation, bytes: &[u64], timing: &Timing) -> Vec<Brief> {
        let messages = tree.subtree_sums(|pe| u64::from(bytes[pe.index()] > 0));
        let message = |pe: PeId| {
            let (source, destination) = match operation.is_scatter() {
                true => (PeId::ROOT, pe),
                false => (pe, PeId::ROOT),
            };
            Message {
                source,
                destination,
                bytes: bytes[pe.index()],
            }
        };
        let sends = |pe: PeId| match (operation.is_scatter(), pe == PeId::ROOT) {
            (true, true) => {
                let order = Brief::scatter_order(tree, operation, bytes, timing);
                order.into_iter().map(message).collect()
            }
            (false, false) if bytes[pe.index()] > 0 => vec![message(pe)],
            _ => Vec::new(),
        };
        let child_messages = |pe: PeId| {
            let children = tree.children(pe).iter();
            children.map(|child| messages[child.index()]).collect()
        };
        tree.ids()
            .map(|pe| Brief {
                operation,
                flit_bytes: timing.flit_bytes(),
                pace: timing.pace(tree, pe),
                sends: sends(pe),
                subtree_messages: messages[pe.index()],
                child_messages: child_messages(pe),
            })
            .collect()
    }
}

/// The part of a PE's state that depends on the algorithm.
#[derive(Debug)]
enum Role {
    Scatter(scatter::Scatter),
    ShoulderTap(shoulder_tap::ShoulderTap),
    Certification(certification::Certification),
    Linear(linear::Linear),
    Combining(combining::Combining),
}

/// Calls the same method of whichever role the PE plays.
macro_rules! role {
    ($pe:expr, $role:ident => $call:expr) => {
        match &$pe.role {
            Role::Scatter($role) => $call,
            Role::ShoulderTap($role) => $call,
            Role::Certification($role) => $call,
            Role::Linear($role) => $call,
            Role::Combining($role) => $call,
        }
    };
    (mut $pe:expr, $role:ident => $call:expr) => {
        match &mut $pe.role {
            Role::Scatter($role) => $call,
            Role::ShoulderTap($role) => $call,
            Role::Certification($role) => $call,
            Role::Linear($role) => $call,
            Role::Combining($role) => $call,
        }
    };
}

/// Where a PE stands in its tree.
#[derive(Clone, Debug)]
struct Place {
    tree: Arc<Tree>,
    id: PeId,
}

impl Place {
    fn parent(&self) -> Option<PeId> {
        self.tree.parent(self.id)
    }

    fn children(&self) -> &[PeId] {
        self.tree.children(self.id)
    }

    fn is_root(&self) -> bool {
        self.id == PeId::ROOT
    }

    /// The children whose subtrees hold messages.
    fn children_with_messages<'a>(&'a self, brief: &'a Brief) -> impl Iterator<Item = PeId> + 'a {
        let held = brief.child_messages.iter();
        self.children()
            .iter()
            .zip(held)
            .filter(|(_, n)| **n > 0)
            .map(|(&child, _)| child)
    }
}

/// The state machine of one PE in one round.
#[derive(Debug)]
pub struct Pe {
    place: Place,
    role: Role,
    receipts: receipts::Receipts,
    /// A message that is coming in, and what becomes of it.
    incoming: Option<(PeId, Message, Route)>,
    /// Whose messages have come in, or begun to: each comes once.
    seen: BTreeSet<PeId>,
    /// The send port is taken by what `poll_transmit` returned.
    sending: Option<Transmit>,
    /// The send port is taken by a relay.
    relaying: bool,
}

impl Pe {
    /// A PE at the start of a round.
    pub fn new(tree: Arc<Tree>, id: PeId, brief: Brief) -> Pe {
        let place = Place { tree, id };
        let receipts = receipts::Receipts::new(&place, &brief);
        let role = match brief.operation {
            Operation::Scatter => Role::Scatter(scatter::Scatter::new(&place, brief)),
            Operation::ShoulderTap => {
                Role::ShoulderTap(shoulder_tap::ShoulderTap::new(&place, brief))
            }
            Operation::Certification(sync) => {
                Role::Certification(certification::Certification::new(&place, brief, sync))
            }
            Operation::LinearGather { window } => {
                Role::Linear(linear::Linear::new(&place, brief, window))
            }
            Operation::CombiningGather | Operation::CombiningScatter => {
                let scatters = brief.operation.is_scatter();
                Role::Combining(combining::Combining::new(&place, brief, scatters))
            }
        };
        Pe {
            place,
            role,
            receipts,
            incoming: None,
            seen: BTreeSet::new(),
            sending: None,
            relaying: false,
        }
    }

    /// Which PE this is.
    pub fn id(&self) -> PeId {
        self.place.id
    }

    /// P0 begins the round.
    pub fn handle_trigger(&mut self, now: Time) {
        role!(mut self, role => role.trigger(now));
    }

    /// A control item came in from a neighbour.
    pub fn handle_control(
        &mut self,
        now: Time,
        from: PeId,
        item: Control,
    ) -> Result<(), Violation> {
        match item {
            Control::Receipt if self.receipts.take(from) => Ok(()),
            _ => role!(mut self, role => role.control(&self.place, now, from, item)),
        }
    }

    /// The head of a message came in from a neighbour: one decision for all of it.
    pub fn handle_head(&mut self, from: PeId, message: Message) -> Result<Route, Violation> {
        if self.incoming.is_some() {
            return Err(Violation::Interrupted { from, message });
        }
        if !self.listens_to(from) {
            return Err(Violation::OutOfTurn { from, message });
        }
        let known = |pe| self.place.tree.contains(pe);
        if !known(message.source) || !known(message.destination) {
            return Err(Violation::NoRoute { from, message });
        }
        if self.seen.contains(&message.pe()) {
            return Err(Violation::Repeated { from, message });
        }
        let route = role!(mut self, role => role.route(&self.place, from, &message))?;
        if message.bytes == 0 {
            return Err(Violation::EmptyMessage { from, message });
        }
        self.seen.insert(message.pe());
        self.relaying |= matches!(route, Route::Relay { .. });
        self.incoming = Some((from, message, route));
        Ok(route)
    }

    /// The last flit of the incoming message has left the receive port.
    pub fn handle_received(&mut self) {
        if let Some((from, message, _)) = self.incoming.take() {
            role!(mut self, role => role.received(from, &message));
        }
    }

    /// The message for this PE is verified and visible.
    pub fn handle_delivered(&mut self) {
        self.receipts.delivered();
    }

    /// The send port has finished with what it was given: the last `Transmit`, or
    /// the relay.
    pub fn handle_sent(&mut self) {
        match self.sending.take() {
            Some(Transmit::Control {
                item: Control::Receipt,
                ..
            }) => self.receipts.sent(),
            Some(transmit) => role!(mut self, role => role.sent(&transmit)),
            // The next message may be coming in while the last flit of this one
            // goes out; the port then stays a relay's.
            None => {
                self.relaying = matches!(self.incoming, Some((_, _, Route::Relay { .. })));
            }
        }
    }

    /// What to send now. The port is busy with it until [`Pe::handle_sent`].
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if self.sending.is_some() || self.relaying {
            return None;
        }
        self.sending = role!(mut self, role => role.next(&self.place, now));
        if self.sending.is_none()
            && role!(self, role => role.is_over(&self.place))
            && let Some(to) = self.receipts.next()
        {
            let item = Control::Receipt;
            self.sending = Some(Transmit::Control { to, item });
        }
        self.sending
    }

    /// So many more bytes of the message under way have passed: sent by this PE, or
    /// received by P0.
    pub fn handle_progress(&mut self, now: Time, bytes: u64) {
        match &mut self.role {
            Role::ShoulderTap(role) => role.progress(bytes),
            Role::Certification(role) => role.progress(now, bytes),
            Role::Scatter(_) | Role::Linear(_) | Role::Combining(_) => {}
        }
    }

    /// In turns: a control item that goes now, between two flits of the message under
    /// way. It counts as sent.
    pub fn poll_interjection(&mut self, now: Time) -> Option<(PeId, Control)> {
        match &mut self.role {
            Role::ShoulderTap(role) => role.interjection(),
            Role::Certification(role) => role.interjection(now),
            Role::Scatter(_) | Role::Linear(_) | Role::Combining(_) => None,
        }
    }

    /// When [`Pe::poll_interjection`] will have something, as far as is known.
    pub fn interjection_timeout(&self) -> Option<Time> {
        match &self.role {
            Role::Certification(role) => role.interjection_timeout(),
            _ => None,
        }
    }

    /// When [`Pe::poll_transmit`] may have something that it has not now, if the
    /// passing of time alone brings it.
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.sending.is_some() || self.relaying {
            return None;
        }
        role!(self, role => role.timeout())
    }

    /// When this PE's own message is due, once an order or a wakeup call has said it;
    /// afterwards, when it was.
    pub fn own_due(&self) -> Option<Time> {
        match &self.role {
            Role::ShoulderTap(role) => role.was_due(),
            Role::Certification(role) => role.was_due(),
            Role::Scatter(_) | Role::Linear(_) | Role::Combining(_) => None,
        }
    }

    /// Whether the receive port would take a control item or a head from this
    /// neighbour now. A frame of another one waits in the network.
    pub fn listens_to(&self, from: PeId) -> bool {
        self.incoming.is_none()
            && (self.receipts.is_due_from(from)
                || role!(self, role => role.listens_to(&self.place, from)))
    }

    /// Whether this PE's part of the round is over.
    pub fn is_finished(&self) -> bool {
        self.sending.is_none()
            && !self.relaying
            && self.incoming.is_none()
            && role!(self, role => role.is_over(&self.place))
            && self.receipts.is_settled()
    }
}
