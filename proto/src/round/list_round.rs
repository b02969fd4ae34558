//! A round in which the PE sends and receives at the same time, and several messages at once, in parts:
//! a static schedule, or a scatter or gather at P0 if it uses all ports.
//!
//! A flit that a connection does not accept yet is in progress while the round continues to receive.
//! With one send port, the next flit waits for it; with a port for each neighbour, only the next one to
//! the same neighbour does.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use smallvec::SmallVec;

use super::hash::Hash;
use super::outgoing::Outgoing;
use super::shared::{Incoming, PendingAction, Shared};
use super::{Action, Observer};
use crate::{MessageId, PeId, Time};

/// One PE's part of a round in which it sends and receives at the same time.
#[derive(Debug)]
pub struct ListRound<O> {
    pub(super) shared: Shared<O>,
    /// Whether each neighbour has its own send port.
    all_ports: bool,
    /// Outgoing parts: one, or one for each neighbour that has its own port.
    outgoing: SmallVec<[Outgoing; 1]>,
    /// Transmissions in progress, one for each neighbour.
    under_way: SmallVec<[PendingAction; 1]>,
    /// Payload bytes sent since the last check for incoming frames.
    unlooked_bytes: u64,
    /// For each message that uses several ports: the number of bytes from its start that were sent to
    /// any neighbour.
    sent_bytes: BTreeMap<MessageId, u64>,
    /// Incomplete messages of other neighbours than that of the last flit, with their hashes.
    aside: BTreeMap<PeId, (Incoming, Hash)>,
    /// Messages of which a part has arrived, with the hash of that part.
    paused: BTreeMap<MessageId, (Incoming, Hash)>,
}

impl<O: Observer> ListRound<O> {
    pub(super) fn new(shared: Shared<O>, all_ports: bool) -> ListRound<O> {
        ListRound {
            shared,
            all_ports,
            outgoing: SmallVec::new(),
            under_way: SmallVec::new(),
            unlooked_bytes: 0,
            sent_bytes: BTreeMap::new(),
            aside: BTreeMap::new(),
            paused: BTreeMap::new(),
        }
    }

    pub(super) fn next(&mut self, now: Time) -> Action {
        loop {
            if let Some(action) = self.shared.poll_in_hand(now) {
                return action;
            }
            if let Some(action) = self.poll_incoming() {
                return action;
            }
            if !self.under_way.is_empty() && !self.all_ports {
                return Action::Wait { until: None };
            }
            // Checks for incoming frames after each full flit, or after as many bytes of short ones.
            if self.unlooked_bytes >= self.shared.sizes.piece_bytes(None) {
                self.unlooked_bytes = 0;
                return Action::Wait { until: Some(now) };
            }
            let mut places = 0..self.outgoing.len();
            if let Some(action) = places.find_map(|place| self.poll_part(place)) {
                return action;
            }
            match self.shared.poll_transmit(now) {
                ControlFlow::Continue(part) => self.add(part),
                ControlFlow::Break(action) => return action,
            }
        }
    }

    fn add(&mut self, part: Outgoing) {
        let others = self.outgoing.iter_mut();
        for other in others.filter(|it| it.message.id == part.message.id) {
            // The later parts of the message do not include this one any more.
            other.later_from = part.later_from;
        }
        self.outgoing.push(part);
    }

    /// Returns the next action for an outgoing part; `None` if its next flit has not arrived yet or is
    /// in progress.
    fn poll_part(&mut self, place: usize) -> Option<Action> {
        let part = self.outgoing.get(place)?;
        let Some(to) = part.next_receiver() else {
            // No other frame had to wait.
            let continues = self.through(place);
            return (continues || self.all_ports).then_some(Action::Turn { from: None });
        };
        // The hash of an own message covers all preceding bytes, which another port sends.
        let is_ahead = self.all_ports
            && part.message.source == self.shared.pe.id()
            && part.offset > self.sent_bytes.get(&part.message.id).copied().unwrap_or(0);
        match is_ahead || self.is_under_way_to(to) {
            true => None,
            false => part.next_flit(&self.shared, to, self.later_from(place)),
        }
    }

    /// Returns the offset of the first byte of the same message that is sent from here besides this
    /// part.
    fn later_from(&self, place: usize) -> u64 {
        let part = &self.outgoing[place];
        let all = self.outgoing.iter().enumerate();
        let others = all.filter(|(at, it)| *at != place && it.message.id == part.message.id);
        let others = others.map(|(_, it)| it.offset).min();
        others.map_or(part.later_from, |other| other.min(part.later_from))
    }

    /// Removes a complete outgoing part; returns whether more of its message follows.
    fn through(&mut self, place: usize) -> bool {
        let is_over = self.later_from(place) == u64::MAX;
        let Outgoing { to, message, .. } = self.outgoing.remove(place);
        if is_over {
            self.shared.own_hashes.end(message.id);
        }
        self.shared.pe.handle_sent_to(to[0]);
        !is_over
    }

    /// Handles the end of a flit's transmission.
    pub(super) fn sent(&mut self, now: Time, to: PeId, bytes: u64) {
        self.unlooked_bytes += bytes;
        let mut parts = self.outgoing.iter_mut();
        let Some(part) = parts.find(|part| part.next_receiver() == Some(to)) else {
            return;
        };
        if self.all_ports {
            let sent_bytes = self.sent_bytes.entry(part.message.id).or_default();
            *sent_bytes = (*sent_bytes).max(part.offset + bytes);
        }
        self.shared.sent(now, part, bytes);
    }

    /// Leaves the transmission of the last action in progress.
    pub(super) fn leave(&mut self) {
        self.under_way.extend(self.shared.given.take());
    }

    /// Removes the transmission in progress to a neighbour.
    pub(super) fn take_under_way_to(&mut self, to: PeId) -> Option<PendingAction> {
        let mut all = self.under_way.iter();
        let place = all.position(|given| given.action.sends_to() == Some(to))?;
        Some(self.under_way.swap_remove(place))
    }

    pub(super) fn is_under_way_to(&self, to: PeId) -> bool {
        let mut all = self.under_way.iter();
        all.any(|given| given.action.sends_to() == Some(to))
    }

    pub(super) fn listens_to(&self, from: PeId) -> bool {
        let current = self.shared.receiving.incoming.as_ref();
        current.is_some_and(|incoming| incoming.from == from)
            || self.aside.contains_key(&from)
            || self.shared.pe.listens_to(from)
    }

    /// Makes the message of a neighbour's flit the current one, unless it `begins` with the flit.
    pub(super) fn turn_to(&mut self, now: Time, from: PeId, begins: bool) {
        let receiving = &mut self.shared.receiving;
        if let Some(other) = receiving.incoming.take_if(|it| it.from != from) {
            let hash = std::mem::take(&mut receiving.hash);
            self.aside.insert(other.from, (other, hash));
        }
        if receiving.incoming.is_some() {
            return;
        }
        let next = match self.aside.remove(&from) {
            None if !begins => self.resumed(now, from),
            aside => aside,
        };
        if let Some((incoming, hash)) = next {
            self.shared.receiving.incoming = Some(incoming);
            self.shared.receiving.hash = hash;
        }
    }

    /// Returns the paused message of which a neighbour sends the next part now.
    fn resumed(&mut self, now: Time, from: PeId) -> Option<(Incoming, Hash)> {
        let (id, until) = self.shared.pe.handle_next_part(from)?;
        let (mut incoming, hash) = self.paused.remove(&id)?;
        incoming.from = from;
        incoming.later = incoming.message.bytes - until;
        incoming.since = now;
        Some((incoming, hash))
    }

    /// Returns the next action for the current message if no frame of it is in hand, and pauses it at
    /// the end of a part.
    fn poll_incoming(&mut self) -> Option<Action> {
        let receiving = &mut self.shared.receiving;
        if receiving.incoming.as_ref()?.has_part_left() {
            return None;
        }
        let Some(incoming) = receiving.incoming.take_if(|it| it.later > 0) else {
            return self.shared.poll_end();
        };
        self.shared.pe.handle_received(incoming.from);
        let hash = std::mem::take(&mut self.shared.receiving.hash);
        self.paused.insert(incoming.message.id, (incoming, hash));
        None
    }
}
