//! The time that a choice may take.

use std::time::Instant;

use crate::system::machine::thread_cpu_ns;
use crate::tuning::{CHOICE_PART, CHOICE_UNNOTICED_NS};

/// The predictions of a choice, and the time that is left for more. It is measured on the processor,
/// so that a choice on a busy machine is as good as on an idle one.
#[derive(Debug)]
pub struct Budget {
    began: Instant,
    began_cpu_ns: u64,
    /// The shortest predicted time, [`u64::MAX`] before the first prediction.
    pub best_ns: u64,
    /// The number of predictions.
    pub predictions: usize,
    has_limit: bool,
}

impl Budget {
    /// Starts a choice.
    pub fn new() -> Budget {
        Budget {
            began: Instant::now(),
            began_cpu_ns: thread_cpu_ns(),
            best_ns: u64::MAX,
            predictions: 0,
            has_limit: true,
        }
    }

    /// Starts a choice that may take any time.
    pub fn without_limit() -> Budget {
        Budget {
            has_limit: false,
            ..Budget::new()
        }
    }

    /// Returns the time since the choice began.
    pub fn took_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Returns whether less than a part of the budget, from 0 to 1, is used. The first prediction is
    /// always made.
    pub fn has_left(&self, part: f64) -> bool {
        self.predictions == 0 || (self.used_ns() as f64) < part * self.most_ns() as f64
    }

    /// Returns the part of the budget that is not used.
    pub fn left_ns(&self) -> u64 {
        self.most_ns().saturating_sub(self.used_ns())
    }

    /// Counts a prediction of this time.
    pub fn predicted(&mut self, ns: u64) {
        self.predictions += 1;
        self.best_ns = self.best_ns.min(ns);
    }

    fn used_ns(&self) -> u64 {
        thread_cpu_ns().saturating_sub(self.began_cpu_ns)
    }

    fn most_ns(&self) -> u64 {
        match self.predictions {
            _ if !self.has_limit => u64::MAX,
            0 => CHOICE_UNNOTICED_NS,
            _ => (self.best_ns / CHOICE_PART).max(CHOICE_UNNOTICED_NS),
        }
    }
}
