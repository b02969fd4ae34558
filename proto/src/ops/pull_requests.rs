//! Calls of receivers in static schedules with turns. A receiver calls its next sender when the
//! rest of the called streams takes as long as the next stream needs to arrive, so that no port of
//! a switch gets two streams (spec-exchange, section 10). A PE sends only after a call.

use std::collections::BTreeMap;

use crate::PeId;

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
