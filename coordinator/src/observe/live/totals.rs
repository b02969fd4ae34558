//! What a command has counted since it began, over all the clusters that it launched.

use std::collections::BTreeMap;
use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::Counts;

/// How a round ended, for who counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoundEnd {
    /// Every message was delivered.
    Done,
    /// It was given up.
    Failed,
    /// Ctrl-C.
    Interrupted,
}

impl RoundEnd {
    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            RoundEnd::Done => "done",
            RoundEnd::Failed => "failed",
            RoundEnd::Interrupted => "interrupted",
        }
    }
}

/// Which rounds are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoundKind {
    /// "scatter", "gather" or "broadcast".
    pub operation: &'static str,
    /// Its algorithm.
    pub algorithm: &'static str,
}

/// Times, by the least of these bounds that they do not exceed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// How many were within each bound and above the one before.
    pub within: [u64; BOUNDS_S.len()],
    /// How many there were, those above the last bound too.
    pub count: u64,
    /// All of them.
    pub sum: Duration,
}

/// In seconds: from a round of a few messages on one machine to one of hours.
pub const BOUNDS_S: [f64; 14] = [
    0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0, 10_000.0,
];

impl Histogram {
    /// One more.
    pub fn add(&mut self, time: Duration) {
        let seconds = time.as_secs_f64();
        if let Some(place) = BOUNDS_S.iter().position(|bound| seconds <= *bound) {
            self.within[place] += 1;
        }
        self.count += 1;
        self.sum += time;
    }
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// What the PEs have counted.
    pub pes: BTreeMap<PeId, Counts>,
    /// Rounds.
    pub rounds: BTreeMap<(RoundKind, RoundEnd), u64>,
    /// What went wrong.
    pub errors: BTreeMap<&'static str, u64>,
    /// What rounds that were done had been predicted to take.
    pub predicted: BTreeMap<RoundKind, Histogram>,
    /// What they took.
    pub measured: BTreeMap<RoundKind, Histogram>,
}

impl Totals {
    /// Nothing was counted.
    pub const fn new() -> Totals {
        Totals {
            pes: BTreeMap::new(),
            rounds: BTreeMap::new(),
            errors: BTreeMap::new(),
            predicted: BTreeMap::new(),
            measured: BTreeMap::new(),
        }
    }

    /// Takes in what the PEs of a cluster have counted.
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
