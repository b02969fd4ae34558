//! Messages that a PE holds until it sends them on.

use std::collections::BTreeMap;

use crate::MessageId;

/// The messages that a PE holds, and how many flits of them are in memory.
#[derive(Debug)]
pub(super) struct Held {
    flit_bytes: u64,
    /// For each message, the number of bytes that have arrived, and how many of them are not needed
    /// any more.
    messages: BTreeMap<MessageId, [u64; 2]>,
    /// The sum over all messages.
    flits: u64,
}

impl Held {
    pub(super) fn new(flit_bytes: u32) -> Held {
        Held {
            flit_bytes: flit_bytes.into(),
            messages: BTreeMap::new(),
            flits: 0,
        }
    }

    fn change(&mut self, message: MessageId, change: impl FnOnce(&mut [u64; 2])) {
        let held = self.messages.entry(message).or_default();
        let flits =
            |[here, released]: [u64; 2]| here.saturating_sub(released).div_ceil(self.flit_bytes);
        let before = flits(*held);
        change(held);
        self.flits = self.flits + flits(*held) - before;
    }

    /// Resets a message, which begins to arrive.
    pub(super) fn begin(&mut self, message: MessageId) {
        self.change(message, |held| *held = [0, 0]);
    }

    /// Adds bytes of a message that have arrived.
    pub(super) fn add(&mut self, message: MessageId, bytes: u64) {
        self.change(message, |[here, _]| *here += bytes);
    }

    /// Marks the bytes of a message before `end` as not needed any more.
    pub(super) fn give_up_to(&mut self, message: MessageId, end: u64) {
        self.change(message, |[_, released]| *released = end.max(*released));
    }

    /// Returns the number of flits that have arrived and are still needed.
    pub(super) fn flits(&self) -> u64 {
        self.flits
    }

    /// Returns the number of bytes of a message that have arrived.
    pub(super) fn bytes_of(&self, message: MessageId) -> u64 {
        self.messages.get(&message).map_or(0, |[here, _]| *here)
    }
}

/// The flits of other PEs' messages in memory.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) held: Held,
    flits: u64,
    /// Maximum of `flits` so far.
    pub(super) peak_flits: u64,
}

impl Buffers {
    pub(super) fn new(flit_bytes: u32) -> Buffers {
        Buffers {
            held: Held::new(flit_bytes),
            flits: 0,
            peak_flits: 0,
        }
    }

    /// Counts the flits of held messages and `passing` ones; returns their number if it changed.
    pub(super) fn count(&mut self, passing: u64) -> Option<u64> {
        let flits = self.held.flits + passing;
        self.peak_flits = self.peak_flits.max(flits);
        (std::mem::replace(&mut self.flits, flits) != flits).then_some(flits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum equals that of the messages at any time, each in whole flits.
    #[test]
    fn the_flits_in_memory_are_those_that_have_arrived_and_are_needed() {
        let mut random = crate::seeded::SplitMix64::new(34);
        let mut held = Held::new(10);
        for _ in 0..2000 {
            let message = MessageId(random.below(5));
            match random.below(9) {
                0 => held.begin(message),
                1..5 => held.add(message, random.below(25)),
                _ => held.give_up_to(message, random.below(40) + held.bytes_of(message) / 2),
            }
            let flits = held.messages.values().map(|[here, released]| {
                let bytes = here.saturating_sub(*released);
                bytes.div_ceil(10)
            });
            assert_eq!(held.flits, flits.sum::<u64>());
        }
        assert!(held.flits > 0);
    }
}
