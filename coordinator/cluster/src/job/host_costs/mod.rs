//! The costs of processes on each machine: measured when a command first uses the machine (by a
//! separate process of a PE there, `flitcast calibrate --host`), stored in a cache, and corrected after
//! every round.
//!
//! `flitcast_plan::calibration::cost_estimate` contains the filter that learns.

use std::time::Duration;

mod cache;
pub mod files;
mod known;

pub use cache::Key;
pub use known::{
    HostCosts, comparable_arrivals, expected, geometric_mean, host_here, is_here, keep_measured,
    known, learn, take_measured,
};

/// The source of an estimate of a host's costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CostSource {
    /// A measurement for this command.
    Measured,
    Cached {
        /// The number of rounds that it was learned from.
        rounds: u64,
        /// The time since the first of them.
        age: Duration,
    },
    Profile,
    /// An assumption, because no PE could measure it.
    Assumed,
}

impl CostSource {
    /// Returns the name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            CostSource::Measured => "measured",
            CostSource::Cached { .. } => "cached",
            CostSource::Profile => "profile",
            CostSource::Assumed => "assumed",
        }
    }

    /// Returns the less certain of two sources of costs that are used together, which is the one to
    /// report: assumptions first, then the one learned from the fewest rounds.
    pub fn less_sure(self, other: CostSource) -> CostSource {
        let rank = |source: CostSource| match source {
            CostSource::Assumed => (0, 0),
            CostSource::Measured => (1, 0),
            CostSource::Cached { rounds, .. } => (2, rounds),
            CostSource::Profile => (3, 0),
        };
        if rank(self) <= rank(other) {
            self
        } else {
            other
        }
    }
}
