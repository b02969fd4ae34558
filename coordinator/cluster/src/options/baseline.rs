//! The names of baselines: well-known algorithms that are run for comparison with the schedules.

use clap::ValueEnum;
use flitcast_plan::Algorithm;
use flitcast_proto::ops::SHORT_QUEUE_BYTES;

/// Number of requests that the windowed gather keeps under way.
pub const WINDOW: usize = 4;

/// A baseline, with its help on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Baseline {
    /// Baseline on complete:N: one PE after the other
    Linear,
    /// Baseline on complete:N: four PEs at a time
    Window,
    /// Baseline on complete:N: a binomial tree of PEs that hold a message before they send it on
    Binomial,
    /// Baseline on complete:N: a binomial tree that spares long messages detours (Träff, arXiv 1702.05967)
    Adaptive,
}

impl Baseline {
    /// Returns all baselines.
    pub fn all() -> impl Iterator<Item = Baseline> {
        Baseline::value_variants().iter().copied()
    }

    pub fn named(name: &str) -> Option<Baseline> {
        Baseline::all().find(|baseline| baseline.name() == name)
    }

    /// Returns the name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Baseline::Linear => "linear",
            Baseline::Window => "window",
            Baseline::Binomial => "binomial",
            Baseline::Adaptive => "adaptive",
        }
    }

    /// Returns whether a switch with short queues drops no packets: one PE sends at a time, or what several
    /// send at once is short, if the longest message has `longest` bytes.
    pub fn spares_queues(self, longest: u64) -> bool {
        match self {
            Baseline::Linear => true,
            Baseline::Window => WINDOW as u64 * longest <= SHORT_QUEUE_BYTES,
            Baseline::Binomial | Baseline::Adaptive => false,
        }
    }

    /// Returns whether PEs store messages of others before they send them on.
    pub fn stores(self) -> bool {
        matches!(self, Baseline::Binomial | Baseline::Adaptive)
    }

    /// Returns the operation that the PEs run for the operation named `name`, if the baseline
    /// supports it.
    pub fn operation(self, name: &str) -> Option<Algorithm> {
        let operations: &[Algorithm] = match self {
            // On a star every order is farthest first, and this one is by index.
            Baseline::Linear => &[Algorithm::FARTHEST_FIRST, Algorithm::linear_gather(1)],
            Baseline::Window => &[Algorithm::linear_gather(WINDOW as u32)],
            Baseline::Binomial | Baseline::Adaptive => {
                &[Algorithm::COMBINING_SCATTER, Algorithm::COMBINING_GATHER]
            }
        };
        let mut operations = operations.iter().copied();
        operations.find(|operation| operation.collective().name() == name)
    }
}
