//! Calls of receivers, where lists are played in turns: a receiver calls its next sender when what
//! is left of the streams that it has called takes as long as the next one needs to come, so that
//! no port of a switch gets two streams (spec-exchange, section 10). Nobody sends uncalled.

use std::collections::BTreeMap;

use crate::PeId;

/// What a PE has called for, and what it was called for.
#[derive(Debug)]
pub(super) struct Calls {
    /// Payload that comes between a call and the first byte that it brings: so much may be due
    /// when the next sender is called.
    ahead_bytes: u64,
    /// Payload that was called for and has not come in whole flits; and of it, what is here of
    /// flits that are not whole.
    due_bytes: u64,
    partial_bytes: u64,
    /// Calls that are yet to come, and those that came and were not followed yet, by receiver.
    awaited: BTreeMap<PeId, u64>,
    heard: BTreeMap<PeId, u64>,
}

impl Calls {
    /// Before all calls, one for each of these crossings' receivers.
    pub(super) fn new(ahead_bytes: u64, receivers: impl Iterator<Item = PeId>) -> Calls {
        let mut awaited = BTreeMap::new();
        for receiver in receivers {
            *awaited.entry(receiver).or_default() += 1;
        }
        Calls {
            ahead_bytes,
            due_bytes: 0,
            partial_bytes: 0,
            awaited,
            heard: BTreeMap::new(),
        }
    }

    /// Whether it is time to call for more.
    pub(super) fn is_time(&self) -> bool {
        self.due_bytes.saturating_sub(self.partial_bytes) <= self.ahead_bytes
    }

    /// How much of flits that are not whole has to be here for that.
    pub(super) fn awaits_bytes(&self) -> u64 {
        self.due_bytes.saturating_sub(self.ahead_bytes)
    }

    /// A sender is called for so many bytes.
    pub(super) fn call(&mut self, bytes: u64) {
        self.due_bytes = self.due_bytes.saturating_add(bytes);
    }

    /// So much of flits that are not whole is here.
    pub(super) fn arriving(&mut self, bytes: u64) {
        self.partial_bytes = bytes;
    }

    /// So much of what was called for has come, or will not.
    pub(super) fn settle(&mut self, bytes: u64) {
        self.due_bytes = self.due_bytes.saturating_sub(bytes);
        self.partial_bytes = 0;
    }

    /// Whether a call of this receiver is yet to come.
    pub(super) fn awaits(&self, receiver: PeId) -> bool {
        self.awaited.contains_key(&receiver)
    }

    /// A receiver calls; false, if it has no reason to.
    pub(super) fn hear(&mut self, receiver: PeId) -> bool {
        let is_awaited = take_one(&mut self.awaited, receiver);
        if is_awaited {
            *self.heard.entry(receiver).or_default() += 1;
        }
        is_awaited
    }

    /// Whether this receiver has called.
    pub(super) fn has_heard(&self, receiver: PeId) -> bool {
        self.heard.contains_key(&receiver)
    }

    /// What this receiver called for begins.
    pub(super) fn follow(&mut self, receiver: PeId) {
        take_one(&mut self.heard, receiver);
    }
}

/// Takes one of so many away; false, if there is none.
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
    fn the_next_is_called_when_what_is_left_comes_as_quickly() {
        let mut calls = Calls::new(10, std::iter::empty());
        assert!(calls.is_time());
        calls.call(100);
        assert!(!calls.is_time());
        assert_eq!(calls.awaits_bytes(), 90);
        calls.arriving(89);
        assert!(!calls.is_time());
        calls.arriving(90);
        assert!(calls.is_time());
        // Whole flits count in place of what they were in part.
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
        let mut calls = Calls::new(0, [once, twice, twice].into_iter());
        assert!(!calls.hear(never));
        assert!(calls.hear(once) && !calls.hear(once));
        assert!(calls.hear(twice) && calls.awaits(twice));
        assert!(calls.has_heard(twice));
        calls.follow(twice);
        assert!(!calls.has_heard(twice));
        assert!(calls.hear(twice) && !calls.hear(twice));
    }
}
