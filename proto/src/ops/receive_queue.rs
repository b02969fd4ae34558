//! The crossings that a PE with a static schedule is yet to receive, from each neighbour in the
//! schedule's order, and the rule for those that may arrive now.
//!
//! With turns, a receiver calls its next sender when the rest of the called streams takes as long as the
//! next stream needs to arrive, so that no port of a switch gets two streams (spec-exchange, section
//! 10). A PE sends only after a call.

use std::collections::{BTreeMap, VecDeque};

use crate::items::ScheduledHop;
use crate::{MessageId, PeId};

/// A crossing to be received, with the number of its bytes that are yet to arrive.
#[derive(Debug)]
pub(super) struct PendingReceive {
    pub(super) hop: ScheduledHop,
    pub(super) left_bytes: u64,
}

/// The rule for crossings that may arrive now.
#[derive(Debug)]
pub(super) enum ReceiveRule {
    /// The first crossings, as many as were called.
    Called(usize),
    /// The first crossing.
    First,
    /// The first crossing, and every message of one flit.
    FirstOrShort,
    /// The first crossing of each neighbour that continues its message; for each message, the
    /// number of its flits that are here.
    All(BTreeMap<MessageId, u64>),
}

/// The crossings that are yet to arrive.
#[derive(Debug)]
pub(super) struct ReceiveQueue {
    /// The crossings of each sender with their positions in the schedule.
    receives: BTreeMap<PeId, VecDeque<(usize, PendingReceive)>>,
    /// The senders in the schedule's order.
    order: BTreeMap<usize, PeId>,
    open: ReceiveRule,
}

impl ReceiveQueue {
    pub(super) fn new(
        all: impl Iterator<Item = PendingReceive>,
        open: ReceiveRule,
    ) -> ReceiveQueue {
        let mut intake = ReceiveQueue {
            receives: BTreeMap::new(),
            order: BTreeMap::new(),
            open,
        };
        for (place, take) in all.enumerate() {
            intake.order.insert(place, take.hop.from);
            let of_sender = intake.receives.entry(take.hop.from).or_default();
            of_sender.push_back((place, take));
        }
        intake
    }

    /// Returns whether all crossings have arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns whether a crossing from a neighbour is yet to arrive.
    pub(super) fn has_more_from(&self, from: PeId) -> bool {
        self.receives.contains_key(&from)
    }

    fn in_order(&self) -> impl Iterator<Item = &PendingReceive> {
        self.order.iter().filter_map(|(place, from)| {
            let mut of_sender = self.receives.get(from)?.iter();
            Some(&of_sender.find(|(at, _)| at == place)?.1)
        })
    }

    pub(super) fn called(&self) -> impl Iterator<Item = &PendingReceive> {
        let called = match self.open {
            ReceiveRule::Called(called) => called,
            _ => 0,
        };
        self.in_order().take(called)
    }

    /// Returns the crossing to be called next, if crossings are called.
    pub(super) fn next_call(&self) -> Option<&PendingReceive> {
        match self.open {
            ReceiveRule::Called(called) => self.in_order().nth(called),
            _ => None,
        }
    }

    /// Marks the next crossing as called and returns it.
    pub(super) fn call(&mut self) -> Option<&PendingReceive> {
        if let ReceiveRule::Called(called) = &mut self.open {
            *called += 1;
        }
        self.called().last()
    }

    /// Returns whether a crossing from a neighbour may arrive now.
    pub(super) fn is_open_from(&self, from: PeId) -> bool {
        let Some((place, PendingReceive { hop, .. })) =
            self.receives.get(&from).and_then(VecDeque::front)
        else {
            return false;
        };
        let is_first = || self.order.first_key_value() == Some((place, &from));
        match &self.open {
            ReceiveRule::Called(called) => self.order.keys().take(*called).any(|it| it == place),
            ReceiveRule::First => is_first(),
            ReceiveRule::FirstOrShort => (hop.offset, hop.flits) == (0, 1) || is_first(),
            // Parts of a message come one after the other, from any neighbour.
            ReceiveRule::All(here) => here.get(&hop.message).copied().unwrap_or(0) == hop.offset,
        }
    }

    /// Returns the crossing that may arrive from a neighbour now.
    pub(super) fn open_from(&mut self, from: PeId) -> Option<&mut PendingReceive> {
        let is_open = self.is_open_from(from);
        let of_sender = self.receives.get_mut(&from).filter(|_| is_open)?;
        of_sender.front_mut().map(|(_, take)| take)
    }

    /// Removes the first crossing from a neighbour, which is complete.
    pub(super) fn through(&mut self, from: PeId) -> Option<PendingReceive> {
        let of_sender = self.receives.get_mut(&from)?;
        let (place, take) = of_sender.pop_front()?;
        if of_sender.is_empty() {
            self.receives.remove(&from);
        }
        self.order.remove(&place);
        match &mut self.open {
            ReceiveRule::Called(called) => *called -= 1,
            ReceiveRule::First | ReceiveRule::FirstOrShort => {}
            ReceiveRule::All(here) => *here.entry(take.hop.message).or_default() += take.hop.flits,
        }
        Some(take)
    }
}

/// The calls that a PE has made and received.
#[derive(Debug)]
pub(super) struct PullRequests {
    /// Payload that arrives between a call and the first byte of the called stream: the amount that
    /// may be outstanding when the next sender is called.
    ahead_bytes: u64,
    /// Payload that was called for and has not arrived in whole flits; and the part of it that has
    /// arrived in incomplete flits.
    due_bytes: u64,
    partial_bytes: u64,
    /// Calls that are yet to arrive, and calls that arrived and were not followed yet, for each
    /// receiver.
    awaited: BTreeMap<PeId, u64>,
    received: BTreeMap<PeId, u64>,
}

impl PullRequests {
    /// Starts without calls; one call is expected from each of these receivers.
    pub(super) fn new(ahead_bytes: u64, receivers: impl Iterator<Item = PeId>) -> PullRequests {
        let mut awaited = BTreeMap::new();
        for receiver in receivers {
            *awaited.entry(receiver).or_default() += 1;
        }
        PullRequests {
            ahead_bytes,
            due_bytes: 0,
            partial_bytes: 0,
            awaited,
            received: BTreeMap::new(),
        }
    }

    /// Returns whether it is time to call the next sender.
    pub(super) fn is_time(&self) -> bool {
        self.due_bytes.saturating_sub(self.partial_bytes) <= self.ahead_bytes
    }

    /// Returns the number of bytes of incomplete flits at which it is time to call.
    pub(super) fn awaits_bytes(&self) -> u64 {
        self.due_bytes.saturating_sub(self.ahead_bytes)
    }

    pub(super) fn call(&mut self, bytes: u64) {
        self.due_bytes = self.due_bytes.saturating_add(bytes);
    }

    /// Sets the number of bytes of incomplete flits that have arrived.
    pub(super) fn arriving(&mut self, bytes: u64) {
        self.partial_bytes = bytes;
    }

    /// Subtracts bytes that have arrived, or that will not arrive.
    pub(super) fn settle(&mut self, bytes: u64) {
        self.due_bytes = self.due_bytes.saturating_sub(bytes);
        self.partial_bytes = 0;
    }

    /// Returns whether a call of this receiver is yet to arrive.
    pub(super) fn awaits(&self, receiver: PeId) -> bool {
        self.awaited.contains_key(&receiver)
    }

    /// Adds a call from a receiver; returns false if none was expected.
    pub(super) fn receive(&mut self, receiver: PeId) -> bool {
        let is_awaited = take_one(&mut self.awaited, receiver);
        if is_awaited {
            *self.received.entry(receiver).or_default() += 1;
        }
        is_awaited
    }

    pub(super) fn has_received(&self, receiver: PeId) -> bool {
        self.received.contains_key(&receiver)
    }

    /// Removes a call because its crossing begins.
    pub(super) fn follow(&mut self, receiver: PeId) {
        take_one(&mut self.received, receiver);
    }
}

/// Decrements a count and removes it at 0; returns false if there is none.
pub(super) fn take_one<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) -> bool {
    let Some(count) = counts.get_mut(&key) else {
        return false;
    };
    *count -= 1;
    if *count == 0 {
        counts.remove(&key);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_sender_is_called_when_the_rest_arrives_as_quickly() {
        let mut calls = PullRequests::new(10, std::iter::empty());
        assert!(calls.is_time());
        calls.call(100);
        assert!(!calls.is_time());
        assert_eq!(calls.awaits_bytes(), 90);
        calls.arriving(89);
        assert!(!calls.is_time());
        calls.arriving(90);
        assert!(calls.is_time());
        // Whole flits replace the incomplete ones in the count.
        calls.settle(60);
        assert_eq!((calls.is_time(), calls.awaits_bytes()), (false, 30));
        calls.settle(30);
        assert!(calls.is_time());
        calls.call(5);
        assert!(!calls.is_time());
    }

    #[test]
    fn a_receiver_calls_as_often_as_it_has_something_to_take() {
        let (once, twice, never) = (PeId(1), PeId(2), PeId(3));
        let mut calls = PullRequests::new(0, [once, twice, twice].into_iter());
        assert!(!calls.receive(never));
        assert!(calls.receive(once) && !calls.receive(once));
        assert!(calls.receive(twice) && calls.awaits(twice));
        assert!(calls.has_received(twice));
        calls.follow(twice);
        assert!(!calls.has_received(twice));
        assert!(calls.receive(twice) && !calls.receive(twice));
    }
}
