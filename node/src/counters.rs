//! What a PE counts while it plays rounds, for whoever wants to see it run: its links and
//! its rounds add to it, and the answers to pings, the reports and a metrics page read it.
//!
//! One thread writes; others may read. An addition for each frame is all it costs: no lock,
//! no clock, no system call.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flitcast_proto::wire::MAX_COUNTED_EDGES;
use flitcast_proto::wire::control::{Counts, EdgeCounts};
use flitcast_proto::{PeId, Time};

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
    /// A frame of so many bytes has come.
    pub fn received(&self, bytes: usize, is_flit: bool) {
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
        self.received_flits.fetch_add(is_flit.into(), Relaxed);
    }

    /// A frame has come that had come before.
    pub fn repeated(&self, bytes: usize) {
        self.received_bytes.fetch_add(bytes as u64, Relaxed);
        self.repeated_frames.fetch_add(1, Relaxed);
    }

    /// A frame of so many bytes has gone.
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

/// What a PE counts in the rounds of one cluster.
#[derive(Debug, Default)]
pub struct Counters {
    /// Locked when an edge is made, and by who reads.
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
}

impl Counters {
    /// Where the frames to and from a neighbour are counted.
    pub fn edge(&self, peer: PeId) -> Arc<EdgeCounter> {
        let counter = Arc::<EdgeCounter>::default();
        let mut edges = unpoisoned(&self.edges);
        if edges.len() < MAX_COUNTED_EDGES {
            edges.push((peer, counter.clone()));
        }
        counter
    }

    /// A round begins here: P0 is triggered, or something of it comes.
    pub fn round_begins(&self) {
        self.moved_bytes.store(0, Relaxed);
        self.rounds_begun.fetch_add(1, Relaxed);
    }

    /// The PE's part in a round is over.
    pub fn round_done(&self) {
        self.rounds_done.fetch_add(1, Relaxed);
    }

    /// So much payload of the PE's own messages has gone, or of messages for it has come.
    pub fn moved(&self, bytes: u64) {
        self.moved_bytes.fetch_add(bytes, Relaxed);
    }

    /// How much that is in the present round.
    pub fn moved_bytes(&self) -> u64 {
        self.moved_bytes.load(Relaxed)
    }

    /// Flits had to wait for a busy port.
    pub fn collided(&self, flits: u64) {
        self.collisions.fetch_add(flits, Relaxed);
    }

    /// A frame of an earlier round was dropped.
    pub fn late(&self) {
        self.late_frames.fetch_add(1, Relaxed);
    }

    /// So many flits of messages that are not the PE's own are in memory now.
    pub fn holds(&self, flits: u64) {
        self.buffered_flits.store(flits, Relaxed);
        self.peak_buffered_flits.fetch_max(flits, Relaxed);
    }

    /// The PE's own message was due then, and began then.
    pub fn started(&self, due: Time, began: Time) {
        self.slips.fetch_add(1, Relaxed);
        let slip = began.0.saturating_sub(due.0);
        self.slip_ns.fetch_add(slip, Relaxed);
    }

    /// All of it, and the process's memory.
    pub fn counts(&self) -> Counts {
        let edges = unpoisoned(&self.edges);
        let repeated = edges.iter().map(|(_, edge)| &edge.repeated_frames);
        Counts {
            edges: edges
                .iter()
                .map(|(peer, edge)| edge.counts(*peer))
                .collect(),
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
        }
    }
}

/// What a PE has counted in all clusters that it was in, one after the other, and what went
/// wrong there.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    /// In the clusters that are over.
    before: Counts,
    now: Arc<Counters>,
    errors: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// The counters of a new cluster.
    pub(crate) fn new_cluster(&self) -> Arc<Counters> {
        let mut counted = unpoisoned(&self.0);
        let over = counted.now.counts();
        counted.before.add(&over);
        counted.now = Arc::default();
        counted.now.clone()
    }

    /// The PE could not go on, for a reason of this kind.
    pub(crate) fn failed(&self, kind: &'static str) {
        *unpoisoned(&self.0).errors.entry(kind).or_default() += 1;
    }

    /// All that was counted.
    pub fn counts(&self) -> Counts {
        let counted = unpoisoned(&self.0);
        let mut all = counted.before.clone();
        all.add(&counted.now.counts());
        all
    }

    /// How often the PE could not go on, by kind.
    pub fn errors(&self) -> BTreeMap<&'static str, u64> {
        unpoisoned(&self.0).errors.clone()
    }
}

/// Numbers are as good as they were when somebody panicked.
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
            counters.round_begins();
            edge.received(bytes, true);
            edge.repeated(1000);
            edge.sent(7, false);
            counters.moved(bytes as u64);
            counters.holds(bytes as u64);
            counters.started(Time(5), Time(7));
            counters.started(Time(5), Time(4));
            counters.round_done();
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
        assert_eq!(
            (counts.buffered_flits, counts.peak_buffered_flits),
            (1, 100)
        );
        assert_eq!((counts.slips, counts.slip_ns), (6, 6));
        assert!(counts.resident_bytes > 100_000, "{counts:?}");
        assert_eq!(tally.errors(), BTreeMap::from([("link", 1)]));
    }
}
