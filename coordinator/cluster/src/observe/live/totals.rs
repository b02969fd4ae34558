//! Counters of a command since its start, over all clusters that it launched.

use std::collections::BTreeMap;
use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::Counts;

/// The end of a round, as a label of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoundEnd {
    /// Every message was delivered.
    Done,
    Failed,
    Interrupted,
}

impl RoundEnd {
    /// Returns the machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            RoundEnd::Done => "done",
            RoundEnd::Failed => "failed",
            RoundEnd::Interrupted => "interrupted",
        }
    }
}

/// The key by which rounds are counted: operation and algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoundKind {
    /// "scatter", "gather", "broadcast", "gossip" or "exchange".
    pub operation: &'static str,
    pub algorithm: &'static str,
}

/// A histogram of times with the upper bounds [`BOUNDS_S`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Number of times in each bucket: above the previous bound and at most this bound.
    pub within: [u64; BOUNDS_S.len()],
    /// Number of all times, including those above the last bound.
    pub count: u64,
    pub sum: Duration,
}

/// Upper bounds in seconds: from a short round on one machine to a round of hours.
pub const BOUNDS_S: [f64; 14] = [
    0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0, 10_000.0,
];

impl Histogram {
    pub fn add(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        if let Some(place) = BOUNDS_S.iter().position(|bound| seconds <= *bound) {
            self.within[place] += 1;
        }
        self.count += 1;
        self.sum += time;
    }
}

/// All counters of a command.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub pes: BTreeMap<PeId, Counts>,
    pub rounds: BTreeMap<(RoundKind, RoundEnd), u64>,
    /// Number of failures by kind.
    pub errors: BTreeMap<&'static str, u64>,
    /// Predicted durations of completed rounds.
    pub predicted: BTreeMap<RoundKind, Histogram>,
    /// Measured durations of completed rounds.
    pub measured: BTreeMap<RoundKind, Histogram>,
}

impl Totals {
    /// Adds the counters of the PEs of a cluster.
    pub fn add<'a>(&mut self, counts: impl Iterator<Item = (PeId, &'a Counts)>) {
        for (pe, counts) in counts {
            self.pes.entry(pe).or_default().add(counts);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_counted_once_within_its_bound() {
        let mut histogram = Histogram::default();
        for us in [300, 301, 1000, 50_000_000_000] {
            histogram.add(Duration::from_micros(us));
        }
        assert_eq!(histogram.within[..3], [1, 2, 0]);
        assert_eq!(histogram.within.iter().sum::<u64>(), 3);
        assert_eq!(histogram.count, 4);
        assert_eq!(histogram.sum, Duration::from_micros(50_000_001_601));
    }
}
