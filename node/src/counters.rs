//! The counters of a PE's rounds: links and rounds add to them; answers to pings, reports and a metrics
//! page read them.
//!
//! One thread writes; others may read. A frame costs one addition: no lock, no clock, no system call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flitcast_proto::round::Observer;
use flitcast_proto::wire::MAX_COUNTED_EDGES;
use flitcast_proto::wire::control::{Counts, EdgeCounts};
use flitcast_proto::{PeId, Time, Unkept};

use crate::system::process::resident_bytes;

/// Frames on the edge to one neighbour.
#[derive(Debug, Default)]
pub struct EdgeCounter {
    received_bytes: AtomicU64,
    sent_bytes: AtomicU64,
    received_flits: AtomicU64,
    sent_flits: AtomicU64,
    repeated_frames: AtomicU64,
}

impl EdgeCounter {
    pub fn received(&self, bytes: usize, is_flit: bool) {
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
        self.received_flits.fetch_add(is_flit.into(), Relaxed);
    }

    /// Counts a received duplicate of a frame.
    pub fn repeated(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
        self.repeated_frames.fetch_add(1, Relaxed);
    }

    pub fn sent(&self, bytes: usize, is_flit: bool) {
        self.sent_bytes.fetch_add(bytes as u64, Relaxed);
        self.sent_flits.fetch_add(is_flit.into(), Relaxed);
    }

    fn counts(&self, peer: PeId) -> EdgeCounts {
        EdgeCounts {
            peer,
            received_bytes: self.received_bytes.load(Relaxed),
            sent_bytes: self.sent_bytes.load(Relaxed),
            received_flits: self.received_flits.load(Relaxed),
            sent_flits: self.sent_flits.load(Relaxed),
        }
    }
}

/// The counters of a PE's rounds in one cluster.
#[derive(Debug, Default)]
pub struct Counters {
    /// Locked when an edge is added, and by readers.
    edges: Mutex<Vec<(PeId, Arc<EdgeCounter>)>>,
    rounds_begun: AtomicU64,
    rounds_done: AtomicU64,
    collisions: AtomicU64,
    late_frames: AtomicU64,
    buffered_flits: AtomicU64,
    peak_buffered_flits: AtomicU64,
    moved_bytes: AtomicU64,
    slips: AtomicU64,
    slip_ns: AtomicU64,
    unkept: Mutex<Unkept>,
}

impl Counters {
    /// Returns the counter of the frames to and from a neighbour.
    pub fn edge(&self, peer: PeId) -> Arc<EdgeCounter> {
        let counter = Arc::<EdgeCounter>::default();
        let mut edges = unpoisoned(&self.edges);
        if edges.len() < MAX_COUNTED_EDGES {
            edges.push((peer, counter.clone()));
        }
        counter
    }

    /// Returns the payload bytes of the current round of messages that start or end at this PE.
    pub fn moved_bytes(&self) -> u64 {
        self.moved_bytes.load(Relaxed)
    }

    /// Counts flits that had to wait for a busy port.
    pub fn collided(&self, flits: u64) {
        self.collisions.fetch_add(flits, Relaxed);
    }

    /// Adds entries of a delivered message some of whose attributes could not be set.
    pub fn left_unkept(&self, entries: Unkept) {
        *unpoisoned(&self.unkept) += entries;
    }

    /// Returns all counters, and the memory of the process.
    pub fn counts(&self) -> Counts {
        let edges = unpoisoned(&self.edges);
        let repeated = edges.iter().map(|(_, edge)| &edge.repeated_frames);
        let each = edges.iter().map(|(peer, edge)| edge.counts(*peer));
        Counts {
            edges: each.collect(),
            rounds_begun: self.rounds_begun.load(Relaxed),
            rounds_done: self.rounds_done.load(Relaxed),
            collisions: self.collisions.load(Relaxed),
            late_frames: self.late_frames.load(Relaxed),
            repeated_frames: repeated.map(|frames| frames.load(Relaxed)).sum(),
            buffered_flits: self.buffered_flits.load(Relaxed),
            peak_buffered_flits: self.peak_buffered_flits.load(Relaxed),
            moved_bytes: self.moved_bytes.load(Relaxed),
            slips: self.slips.load(Relaxed),
            slip_ns: self.slip_ns.load(Relaxed),
            resident_bytes: resident_bytes(),
            unkept: *unpoisoned(&self.unkept),
        }
    }
}

/// Counts the events of a round.
pub struct CounterObserver<'a> {
    pub counters: &'a Counters,
    /// Whether the begin and the end of the round count, which may run on several trees.
    pub is_first: bool,
}

impl Observer for CounterObserver<'_> {
    fn begun(&self) {
        if self.is_first {
            self.counters.moved_bytes.store(0, Relaxed);
            *unpoisoned(&self.counters.unkept) = Unkept::default();
            self.counters.rounds_begun.fetch_add(1, Relaxed);
        }
    }

    fn finished(&self) {
        if self.is_first {
            self.counters.rounds_done.fetch_add(1, Relaxed);
        }
    }

    fn moved(&self, bytes: u64) {
        self.counters.moved_bytes.fetch_add(bytes, Relaxed);
    }

    fn late(&self) {
        self.counters.late_frames.fetch_add(1, Relaxed);
    }

    fn holds(&self, flits: u64) {
        self.counters.buffered_flits.store(flits, Relaxed);
        let peak = &self.counters.peak_buffered_flits;
        peak.fetch_max(flits, Relaxed);
    }

    fn started(&self, due: Time, began: Time) {
        let slip = began.0.saturating_sub(due.0);
        self.counters.slips.fetch_add(1, Relaxed);
        self.counters.slip_ns.fetch_add(slip, Relaxed);
    }
}

/// The counters and the errors of a PE in all clusters that it was in, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    /// The sum of earlier clusters.
    before: Counts,
    now: Arc<Counters>,
    errors: BTreeMap<&'static str, u64>,
}

impl Tally {
    pub(crate) fn new_cluster(&self) -> Arc<Counters> {
        let mut counted = unpoisoned(&self.0);
        let over = counted.now.counts();
        counted.before.add(&over);
        counted.now = Arc::default();
        counted.now.clone()
    }

    /// Counts an error of this kind that ended the PE's part.
    pub(crate) fn failed(&self, kind: &'static str) {
        *unpoisoned(&self.0).errors.entry(kind).or_default() += 1;
    }

    pub fn counts(&self) -> Counts {
        let counted = unpoisoned(&self.0);
        let mut all = counted.before.clone();
        all.add(&counted.now.counts());
        all
    }

    /// Returns the number of errors that ended the PE's part, by kind.
    pub fn errors(&self) -> BTreeMap<&'static str, u64> {
        unpoisoned(&self.0).errors.clone()
    }
}

/// Locks counters, which are still valid after a panic.
fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_one_after_the_other_are_counted_together() {
        let tally = Tally::default();
        for (peer, bytes) in [(1, 100), (2, 10), (1, 1)] {
            let counters = tally.new_cluster();
            let edge = counters.edge(PeId(peer));
            let round = CounterObserver {
                counters: &counters,
                is_first: true,
            };
            round.begun();
            edge.received(bytes, true);
            edge.repeated(1000);
            edge.sent(7, false);
            round.moved(bytes as u64);
            round.holds(bytes as u64);
            round.started(Time(5), Time(7));
            round.started(Time(5), Time(4));
            round.finished();
        }
        tally.failed("link");
        let counts = tally.counts();
        let edge = |peer, received_bytes, received_flits| EdgeCounts {
            peer: PeId(peer),
            received_bytes,
            sent_bytes: 7 * received_flits,
            received_flits,
            sent_flits: 0,
        };
        assert_eq!(counts.edges, [edge(1, 2101, 2), edge(2, 1010, 1)]);
        assert_eq!((counts.rounds_begun, counts.rounds_done), (3, 3));
        assert_eq!((counts.repeated_frames, counts.moved_bytes), (3, 1));
        assert_eq!(counts.buffered_flits, 1);
        assert_eq!(counts.peak_buffered_flits, 100);
        assert_eq!((counts.slips, counts.slip_ns), (6, 6));
        assert!(counts.resident_bytes > 100_000, "{counts:?}");
        assert_eq!(tally.errors(), BTreeMap::from([("link", 1)]));
    }
}
