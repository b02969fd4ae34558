//! The state machine of one PE: what all operations have in common. It keeps the two ports and
//! the receipts, and asks the PE's role for the rest.

use std::collections::BTreeSet;
use std::sync::Arc;

use smallvec::SmallVec;

use super::brief::Brief;
use super::receipts::Receipts;
use super::role::{Place, Role};
use super::table::Operation;
use crate::items::{Control, Message, Route, Transmit, Violation};
use crate::{MessageId, PeId, Time, Tree};

/// The state machine of one PE in one round.
#[derive(Debug)]
pub struct Pe {
    place: Place,
    operation: Operation,
    role: Box<dyn Role>,
    receipts: Receipts,
    /// What is coming in, one message of a neighbour, and whether it goes on at once. They are
    /// several only where a list says so.
    incoming: SmallVec<[(PeId, Message, bool); 1]>,
    /// The messages that have come in, or begun to: each comes once.
    seen: BTreeSet<MessageId>,
    /// The send port is taken by what `poll_transmit` returned.
    sending: Option<Transmit>,
    /// Of a list over all ports: what is sent by those of neighbours, which take each other nothing.
    parts: SmallVec<[Transmit; 1]>,
    all_ports: bool,
    /// The send port is taken by a relay.
    relaying: bool,
}

impl Pe {
    /// A PE at the start of a round.
    pub fn new(tree: Arc<Tree>, id: PeId, brief: Brief) -> Pe {
        let place = Place { tree, id };
        let receipts = Receipts::new(&place, &brief);
        let (operation, all_ports) = (brief.operation, brief.all_ports);
        let role = (operation.entry().role)(&place, brief);
        Pe {
            place,
            operation,
            role,
            receipts,
            incoming: SmallVec::new(),
            seen: BTreeSet::new(),
            sending: None,
            parts: SmallVec::new(),
            all_ports,
            relaying: false,
        }
    }

    /// Whether it has a port for each neighbour, and sends by all of them at once.
    pub fn has_all_ports(&self) -> bool {
        self.all_ports
    }

    /// Which PE this is.
    pub fn id(&self) -> PeId {
        self.place.id
    }

    /// The message that this is a part of.
    pub fn whole(&self, message: MessageId) -> MessageId {
        self.operation.whole(&self.place.tree, message).0
    }

    /// P0 begins the round.
    pub fn handle_trigger(&mut self, now: Time) {
        self.role.trigger(now);
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
            _ => self.role.control(&self.place, now, from, item),
        }
    }

    /// The head of a message came in from a neighbour: one decision for all of it.
    pub fn handle_head(&mut self, from: PeId, message: Message) -> Result<Route, Violation> {
        let is_between = !self.operation.is_duplex() && !self.incoming.is_empty();
        if is_between || self.incoming.iter().any(|(of, ..)| *of == from) {
            return Err(Violation::Interrupted { from, message });
        }
        if !self.listens_to(from) {
            return Err(Violation::OutOfTurn { from, message });
        }
        let tree = &self.place.tree;
        let is_known = self.operation.address(tree, message.id) == Some(message.address());
        let is_there = |pe| tree.contains(pe);
        let has_end = message.destination.one().is_none_or(is_there);
        if !is_known || !is_there(message.source) || !has_end {
            return Err(Violation::NoRoute { from, message });
        }
        if self.seen.contains(&message.id) {
            return Err(Violation::Repeated { from, message });
        }
        let route = self.role.route(&self.place, from, &message)?;
        // Lists come from others.
        if route.relay.contains(&from) {
            return Err(Violation::NoRoute { from, message });
        }
        if message.bytes == 0 {
            return Err(Violation::EmptyMessage { from, message });
        }
        self.seen.insert(message.id);
        let relays = route.relays();
        self.relaying |= relays;
        self.incoming.push((from, message, relays));
        Ok(route)
    }

    /// A neighbour goes on with a message of which a part has come: which it is, and how far it
    /// comes now, in bytes from its start. `None` if it is no such neighbour's turn.
    pub fn handle_next_part(&mut self, from: PeId) -> Option<(MessageId, u64)> {
        let (message, until) = self.role.next_part(from)?;
        self.incoming.push((from, message, false));
        Some((message.id, until))
    }

    /// The last flit of what comes in from a neighbour, a message or a part of it, has left the
    /// receive port.
    pub fn handle_received(&mut self, from: PeId) {
        let place = self.incoming.iter().position(|(of, ..)| *of == from);
        if let Some((_, message, _)) = place.map(|place| self.incoming.remove(place)) {
            self.role.received(from, &message);
        }
    }

    /// So many bytes of what a neighbour sends have come, where PEs send and receive at once.
    pub fn handle_taken(&mut self, from: PeId, bytes: u64) {
        self.role.taken(from, bytes);
    }

    /// How many bytes of flits that are not whole have to be here until the PE wants to know of
    /// it ([`Pe::handle_arriving`]); `None`, if it does not.
    pub fn awaits_bytes(&self) -> Option<u64> {
        self.role.awaits_bytes()
    }

    /// So many bytes of flits that are not whole are here.
    pub fn handle_arriving(&mut self, bytes: u64) {
        self.role.arriving(bytes);
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
            Some(transmit) => self.role.sent(&transmit),
            // The next message may be coming in while the last flit of this one
            // goes out; the port then stays a relay's.
            None => {
                self.relaying = self.incoming.iter().any(|(_, _, relays)| *relays);
            }
        }
    }

    /// What went to a neighbour by a port of its own has gone; where there is one port for all, that
    /// has finished with what it was given.
    pub fn handle_sent_to(&mut self, to: PeId) {
        let is_it = |part: &Transmit| matches!(part, Transmit::Part { to: one, .. } if *one == to);
        match self.parts.iter().position(is_it) {
            Some(place) => {
                let part = self.parts.swap_remove(place);
                self.role.sent(&part);
            }
            None => self.handle_sent(),
        }
    }

    /// What to send now. The port is busy with it until [`Pe::handle_sent`].
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if self.sending.is_some() || self.relaying {
            return None;
        }
        let next = self.role.next(&self.place, now);
        if let (true, Some(part @ Transmit::Part { .. })) = (self.all_ports, &next) {
            self.parts.push(part.clone());
            return next;
        }
        self.sending = next;
        if self.sending.is_none()
            && self.role.is_over(&self.place)
            && let Some(to) = self.receipts.next()
        {
            let item = Control::Receipt;
            self.sending = Some(Transmit::Control { to, item });
        }
        self.sending.clone()
    }

    /// So many more bytes of the message under way have passed: sent by this PE, or
    /// received by P0.
    pub fn handle_progress(&mut self, now: Time, bytes: u64) {
        self.role.progress(now, bytes);
    }

    /// In turns: a control item that goes now, between two flits of the message under
    /// way. It counts as sent.
    pub fn poll_interjection(&mut self, now: Time) -> Option<(PeId, Control)> {
        self.role.interjection(now)
    }

    /// When [`Pe::poll_interjection`] will have something, as far as is known.
    pub fn interjection_timeout(&self) -> Option<Time> {
        self.role.interjection_timeout()
    }

    /// When [`Pe::poll_transmit`] may have something that it has not now, if the
    /// passing of time alone brings it.
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.sending.is_some() || self.relaying {
            return None;
        }
        self.role.timeout()
    }

    /// When this PE's own message is due, once an order or a wakeup call has said it;
    /// afterwards, when it was.
    pub fn own_due(&self) -> Option<Time> {
        self.role.was_due()
    }

    /// Whether the receive port would take a control item or a head from this
    /// neighbour now. A frame of another one waits in the network.
    pub fn listens_to(&self, from: PeId) -> bool {
        let is_free = self.incoming.is_empty();
        let is_receipt_due = || self.receipts.is_due_from(from) && !self.role.has_more_from(from);
        is_free && is_receipt_due()
            || (is_free || self.operation.is_duplex()) && self.role.listens_to(&self.place, from)
    }

    /// Whether this PE's part of the round is over.
    pub fn is_finished(&self) -> bool {
        self.sending.is_none()
            && self.parts.is_empty()
            && !self.relaying
            && self.incoming.is_empty()
            && self.role.is_over(&self.place)
            && self.receipts.is_settled()
    }
}
