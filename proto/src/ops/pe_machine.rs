//! The state machine of one PE, as far as all algorithms share it: the two ports and the receipts.
//! The role of the PE decides the rest.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use smallvec::SmallVec;

use super::certification::Certification;
use super::collective::{Collective, Direction};
use super::combining::Combining;
use super::flit_by_flit::FlitByFlit;
use super::linear::Linear;
use super::pe_schedule::{PeRole, PeSchedule};
use super::role::{PePosition, Role, RouteResult};
use super::scatter::Scatter;
use super::shoulder_tap::ShoulderTap;
use super::static_schedule_role::StaticScheduleRole;
use crate::items::{Control, Message, MessageFault, Route, Transmit, Violation};
use crate::{MessageId, PeId, Time, Tree};

/// The state machine of one PE in one round.
#[derive(Debug)]
pub struct PeMachine {
    place: PePosition,
    collective: Collective,
    /// Maximum number of parts of a message.
    parts: usize,
    kind: PeRole,
    role: Box<dyn Role>,
    receipts: Receipts,
    /// Messages in transit through the receive port: the neighbour, the message, and whether it is
    /// relayed at once. Only a static schedule has several.
    incoming: SmallVec<[(PeId, Message, bool); 1]>,
    /// Messages that have arrived or begun to arrive; each arrives once.
    seen: BTreeSet<MessageId>,
    /// The transmission from `poll_transmit` that occupies the send port.
    sending: Option<Transmit>,
    /// Transmissions in progress if each neighbour has its own port.
    by_port: SmallVec<[Transmit; 1]>,
    all_ports: bool,
    /// Whether messages of several neighbours may arrive at the same time.
    is_duplex: bool,
    /// Whether a relay occupies the send port.
    relaying: bool,
}

/// Creates the role of a PE at the start of a round.
fn role(place: &PePosition, schedule: PeSchedule) -> Box<dyn Role> {
    match schedule.role {
        PeRole::Scatter => Box::new(Scatter::new(place, schedule)),
        PeRole::ShoulderTap => Box::new(ShoulderTap::new(place, schedule)),
        PeRole::Certification(sync) => Box::new(Certification::new(place, schedule, sync)),
        PeRole::Linear { window } => Box::new(Linear::new(place, schedule, window)),
        PeRole::Combining => Box::new(Combining::new(place, schedule)),
        PeRole::FlitByFlit => Box::new(FlitByFlit::new(place, schedule)),
        PeRole::StaticSchedule => Box::new(StaticScheduleRole::new(place, schedule)),
    }
}

impl PeMachine {
    /// Creates the state machine of a PE at the start of a round.
    pub fn new(tree: Arc<Tree>, id: PeId, schedule: PeSchedule) -> PeMachine {
        let place = PePosition { tree, id };
        let receipts = Receipts::new(&place, &schedule);
        let (collective, all_ports) = (schedule.collective, schedule.all_ports);
        let (is_duplex, parts) = (schedule.is_duplex(), schedule.parts as usize);
        let kind = schedule.role;
        let role = role(&place, schedule);
        PeMachine {
            place,
            collective,
            parts,
            kind,
            role,
            receipts,
            incoming: SmallVec::new(),
            seen: BTreeSet::new(),
            sending: None,
            by_port: SmallVec::new(),
            all_ports,
            is_duplex,
            relaying: false,
        }
    }

    #[inline]
    pub fn id(&self) -> PeId {
        self.place.id
    }

    /// Returns the message of which `message` is a part.
    pub fn whole(&self, message: MessageId) -> MessageId {
        self.collective.whole(&self.place.tree, message).0
    }

    /// Handles the trigger of the round: at P0 it begins now, or, if all PEs are triggered, at the
    /// given time.
    pub fn handle_trigger(&mut self, at: Time) {
        self.role.trigger(at);
    }

    pub fn handle_control(
        &mut self,
        now: Time,
        from: PeId,
        item: Control,
    ) -> Result<(), Violation> {
        match item {
            Control::Receipt if self.receipts.take(from) => Ok(()),
            _ if self.role.control(&self.place, now, from, item) => Ok(()),
            _ => {
                let phase = self.kind.phase();
                Err(Violation::UnexpectedControl { from, item, phase })
            }
        }
    }

    /// Handles the head of a message from a neighbour; the returned route applies to the whole
    /// message.
    pub fn handle_head(&mut self, from: PeId, message: Message) -> Result<Route, Violation> {
        let route = self.route(from, &message);
        let route = route.map_err(|fault| fault.by(from, message))?;
        self.seen.insert(message.id);
        let relays = route.relays();
        self.relaying |= relays;
        self.incoming.push((from, message, relays));
        Ok(route)
    }

    fn route(&mut self, from: PeId, message: &Message) -> RouteResult {
        let is_between = !self.is_duplex && !self.incoming.is_empty();
        if is_between || self.incoming.iter().any(|(of, ..)| *of == from) {
            return Err(MessageFault::Interrupted);
        }
        if !self.listens_to(from) {
            return Err(MessageFault::OutOfTurn);
        }
        let tree = &self.place.tree;
        let address = self
            .collective
            .address_of_part(tree, message.id, self.parts);
        let is_known = address == Some(message.address());
        let is_there = |pe| tree.contains(pe);
        let has_end = message.destination.one().is_none_or(is_there);
        if !is_known || !is_there(message.source) || !has_end {
            return Err(MessageFault::NoRoute);
        }
        if self.seen.contains(&message.id) {
            return Err(MessageFault::Repeated);
        }
        let route = self.role.route(&self.place, from, message)?;
        // A static schedule comes from another process, so it may be invalid.
        if route.relay.contains(&from) {
            return Err(MessageFault::NoRoute);
        }
        match message.bytes {
            0 => Err(MessageFault::Empty),
            _ => Ok(route),
        }
    }

    /// Handles the continuation of a message of which a part has arrived. Returns the message and
    /// the end of the new part in bytes from the message's start, or `None` if no part from `from`
    /// is due.
    pub fn handle_next_part(&mut self, from: PeId) -> Option<(MessageId, u64)> {
        let (message, until) = self.role.next_part(from)?;
        self.incoming.push((from, message, false));
        Some((message.id, until))
    }

    /// Handles the end of a message, or of a part of it, at the receive port.
    pub fn handle_received(&mut self, from: PeId) {
        let place = self.incoming.iter().position(|(of, ..)| *of == from);
        if let Some((_, message, _)) = place.map(|place| self.incoming.remove(place)) {
            self.role.received(from, &message);
        }
    }

    /// Reports that `bytes` bytes from a neighbour have arrived, if PEs send and receive at the
    /// same time.
    #[inline]
    pub fn handle_taken(&mut self, from: PeId, bytes: u64) {
        self.role.taken(from, bytes);
    }

    /// Returns the number of bytes of incomplete flits at which the driver is to call
    /// [`PeMachine::handle_arriving`], or `None` if it need not.
    #[inline]
    pub fn awaits_bytes(&self) -> Option<u64> {
        self.role.awaits_bytes()
    }

    /// Reports that `bytes` bytes of incomplete flits have arrived.
    pub fn handle_arriving(&mut self, bytes: u64) {
        self.role.arriving(bytes);
    }

    /// Reports that a message for this PE is verified and visible.
    pub fn handle_delivered(&mut self) {
        self.receipts.delivered();
    }

    /// Reports that the send port has finished the last `Transmit`, or the relay.
    pub fn handle_sent(&mut self) {
        match self.sending.take() {
            Some(Transmit::Control {
                item: Control::Receipt,
                ..
            }) => self.receipts.sent(),
            Some(transmit) => self.role.sent(&transmit),
            // The next message may be arriving while the last flit of this one leaves; a relay then
            // still occupies the port.
            None => {
                self.relaying = self.incoming.iter().any(|(_, _, relays)| *relays);
            }
        }
    }

    /// Reports that the port to a neighbour is free, or the only send port if there is one for all.
    pub fn handle_sent_to(&mut self, to: PeId) {
        let is_it = |part: &Transmit| matches!(part, Transmit::Part { to: one, .. } if *one == to);
        match self.by_port.iter().position(is_it) {
            Some(place) => {
                let part = self.by_port.swap_remove(place);
                self.role.sent(&part);
            }
            None => self.handle_sent(),
        }
    }

    /// Returns what to send now. The port is busy with it until [`PeMachine::handle_sent`].
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if self.sending.is_some() || self.relaying {
            return None;
        }
        let next = self.role.next(&self.place, now);
        if let (true, Some(part @ Transmit::Part { .. })) = (self.all_ports, &next) {
            self.by_port.push(part.clone());
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

    /// Reports that `bytes` more bytes of the message in progress were sent by this PE, or received
    /// by P0.
    #[inline]
    pub fn handle_progress(&mut self, now: Time, bytes: u64) {
        self.role.progress(now, bytes);
    }

    /// Returns a control item to send now, between two flits of the message in progress; it counts
    /// as sent. Only for turns.
    #[inline]
    pub fn poll_interjection(&mut self, now: Time) -> Option<(PeId, Control)> {
        self.role.interjection(now)
    }

    /// Returns when [`PeMachine::poll_interjection`] will return an item, as far as that can be computed
    /// now.
    pub fn interjection_timeout(&self) -> Option<Time> {
        self.role.interjection_timeout()
    }

    /// Returns when [`PeMachine::poll_transmit`] may return something without a further event.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        if self.sending.is_some() || self.relaying {
            return None;
        }
        self.role.timeout()
    }

    /// Returns the due time of this PE's own message, past or future, once an order or a wakeup
    /// call has set it.
    pub fn own_due(&self) -> Option<Time> {
        self.role.was_due()
    }

    /// Returns whether the receive port accepts a control item or a head from this neighbour now.
    /// Frames of other neighbours wait in the network.
    #[inline]
    pub fn listens_to(&self, from: PeId) -> bool {
        let is_free = self.incoming.is_empty();
        let is_receipt_due = || self.receipts.is_due_from(from) && !self.role.has_more_from(from);
        is_free && is_receipt_due()
            || (is_free || self.is_duplex) && self.role.listens_to(&self.place, from)
    }

    /// Returns whether this PE's part of the round is over.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.sending.is_none()
            && self.by_port.is_empty()
            && !self.relaying
            && self.incoming.is_empty()
            && self.role.is_over(&self.place)
            && self.receipts.is_settled()
    }
}

/// The end of a round, which is the same for all algorithms: deliveries yet to be made here, receipts yet
/// to arrive, and receipts yet to be sent. Receipts go against the data: upwards if messages go down, when
/// a subtree has everything; downwards if they go up, when P0 has everything.
#[derive(Debug)]
struct Receipts {
    to_deliver: u64,
    due: Vec<PeId>,
    to_send: VecDeque<PeId>,
}

impl Receipts {
    fn new(place: &PePosition, schedule: &PeSchedule) -> Receipts {
        let to_deliver = schedule.receives.len() as u64;
        let children = place.children_with_messages(schedule);
        let parent = place.parent().filter(|_| schedule.subtree_messages > 0);
        match schedule.collective.direction() {
            Direction::Down | Direction::Across => Receipts {
                to_deliver,
                due: children.collect(),
                to_send: parent.into_iter().collect(),
            },
            Direction::Up => Receipts {
                to_deliver,
                due: parent.into_iter().collect(),
                to_send: children.collect(),
            },
        }
    }

    fn delivered(&mut self) {
        self.to_deliver -= 1;
    }

    fn is_due_from(&self, from: PeId) -> bool {
        self.due.contains(&from)
    }

    /// Handles a receipt; returns whether it was due.
    fn take(&mut self, from: PeId) -> bool {
        let place = self.due.iter().position(|&pe| pe == from);
        place.map(|place| self.due.swap_remove(place)).is_some()
    }

    /// Returns the PE that gets a receipt next, or `None` while anything is missing.
    fn next(&self) -> Option<PeId> {
        let complete = self.to_deliver == 0 && self.due.is_empty();
        self.to_send.front().copied().filter(|_| complete)
    }

    fn sent(&mut self) {
        self.to_send.pop_front();
    }

    fn is_settled(&self) -> bool {
        self.to_deliver == 0 && self.due.is_empty() && self.to_send.is_empty()
    }
}
