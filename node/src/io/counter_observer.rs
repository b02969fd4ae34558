//! The counts of a round's events.

use flitcast_proto::Time;
use flitcast_proto::round::Observer;

use crate::counters::Counters;

/// Counts the events of a round.
pub struct CounterObserver<'a> {
    pub(super) counters: &'a Counters,
    pub(super) is_first: bool,
}

impl Observer for CounterObserver<'_> {
    fn begun(&self) {
        if self.is_first {
            self.counters.round_begins();
        }
    }

    fn finished(&self) {
        if self.is_first {
            self.counters.round_done();
        }
    }

    fn moved(&self, bytes: u64) {
        self.counters.moved(bytes);
    }

    fn late(&self) {
        self.counters.late();
    }

    fn holds(&self, flits: u64) {
        self.counters.holds(flits);
    }

    fn started(&self, due: Time, began: Time) {
        self.counters.started(due, began);
    }
}
