//! Counters of a command since its start, over all clusters that it launched, and transfer rates of edges,
//! computed from the counters that PEs report.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{Counts, EdgeCounts};

use super::snapshot::EdgePicture;

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
    pub fn add<'a>(&mut self, counts: impl Iterator<Item = (PeId, &'a Counts)>) {
        for (pe, counts) in counts {
            self.pes.entry(pe).or_default().add(counts);
        }
    }
}

/// Time over which a rate is taken: long enough for two answers to pings.
const OVER: Duration = Duration::from_secs(1);

/// The edge counters that a PE reported within the last second, the latest last.
#[derive(Debug, Default)]
pub struct EdgeRates(VecDeque<(Instant, Vec<EdgeCounts>)>);

impl EdgeRates {
    pub fn add(&mut self, edges: &[EdgeCounts], at: Instant) {
        // The second entry is old enough to be the start of the interval.
        while let Some((second, _)) = self.0.get(1)
            && at.saturating_duration_since(*second) >= OVER
        {
            self.0.pop_front();
        }
        // Rounds may follow each other faster than pings: reports within a short time are merged.
        if let Some((last, _)) = self.0.back()
            && self.0.len() > 1
            && at.saturating_duration_since(*last) < OVER / 4
        {
            self.0.pop_back();
        }
        self.0.push_back((at, edges.to_vec()));
    }

    /// Returns the edge to the parent, or `None` before the first report about the edge.
    pub fn edge(&self, parent: PeId) -> Option<EdgePicture> {
        let of = |edges: &[EdgeCounts]| edges.iter().find(|edge| edge.peer == parent).copied();
        let ((first_at, first), (last_at, last)) = (self.0.front()?, self.0.back()?);
        let now = of(last)?;
        let seconds = last_at.saturating_duration_since(*first_at).as_secs_f64();
        let before = of(first).filter(|_| seconds > 0.0);
        let rate = |bytes: fn(&EdgeCounts) -> u64| {
            let moved = bytes(&now).saturating_sub(bytes(before.as_ref()?));
            Some((moved as f64 / seconds) as u64)
        };
        Some(EdgePicture {
            down_bytes: now.received_bytes,
            up_bytes: now.sent_bytes,
            down_bytes_per_s: rate(|edge| edge.received_bytes),
            up_bytes_per_s: rate(|edge| edge.sent_bytes),
        })
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

    fn edge(received_bytes: u64, sent_bytes: u64) -> Vec<EdgeCounts> {
        vec![EdgeCounts {
            peer: PeId(3),
            received_bytes,
            sent_bytes,
            received_flits: 0,
            sent_flits: 0,
        }]
    }

    #[test]
    fn a_rate_is_one_over_the_last_second() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut rates = EdgeRates::default();
        assert_eq!(rates.edge(PeId(3)), None);
        rates.add(&edge(100, 7), at(0));
        let first = rates.edge(PeId(3)).unwrap();
        assert_eq!((first.down_bytes, first.down_bytes_per_s), (100, None));
        for (ms, bytes) in [(500, 1100), (1000, 2100), (1500, 2600), (2000, 2600)] {
            rates.add(&edge(bytes, 7), at(ms));
        }
        let last = rates.edge(PeId(3)).unwrap();
        assert_eq!((last.down_bytes, last.up_bytes), (2600, 7));
        assert_eq!(last.down_bytes_per_s, Some(500));
        assert_eq!(last.up_bytes_per_s, Some(0));
        assert_eq!(rates.edge(PeId(4)), None);
    }

    #[test]
    fn short_rounds_do_not_pile_up() {
        let begin = Instant::now();
        let mut rates = EdgeRates::default();
        for round in 0..10_000 {
            rates.add(&edge(1000 * round, 0), begin + Duration::from_millis(round));
        }
        assert!(rates.0.len() < 10, "{}", rates.0.len());
        let rate = rates.edge(PeId(3)).unwrap().down_bytes_per_s.unwrap();
        assert!((900_000..1_100_000).contains(&rate), "{rate}");
    }
}
