//! The resources for which PEs wait in virtual time: ports, the wires behind them, and cores.

use std::collections::VecDeque;

use crate::cost::Link;
use crate::round::Sized;

/// A send port or a receive port, which frames pass one after the other. Times are fractional
/// nanoseconds, so that rates are exact over many frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortQueue {
    /// When all frames handed over so far have passed, without a burst.
    full: f64,
    /// When the last control frame has passed.
    slipped: f64,
    /// Duration of the last frame, and of the burst that the link accepts at once.
    last: f64,
    burst: f64,
}

impl PortQueue {
    /// Adds a frame that takes `takes` at `now`; returns when its last byte departs.
    pub(super) fn depart(&mut self, now: f64, takes: f64, link: &Link) -> f64 {
        self.last = takes;
        self.burst = link.ns_per_byte * link.burst_bytes;
        self.full = self.full.max(now) + self.last;
        (self.full - self.burst).max(now)
    }

    /// Adds a control frame, which goes between two packets of a flit and delays the flit
    /// accordingly.
    pub(super) fn slip_in(&mut self, now: f64, bytes: u64, link: &Link) -> f64 {
        let takes = link.ns_per_byte * bytes as f64;
        self.slipped = self.slipped.max(now) + takes;
        self.full = self.full.max(now) + takes;
        (self.slipped - link.ns_per_byte * link.burst_bytes).max(now)
    }

    /// Returns when the last byte of a frame that departed at `departed` arrives if it is the next
    /// one to be received.
    pub(super) fn arrival(&self, departed: f64, takes: f64, link: &Link) -> f64 {
        let (there, full) = self.passed(departed, takes, link);
        (full - link.ns_per_byte * link.burst_bytes).max(there)
    }

    /// Receives a frame that departed at `departed` as the next one.
    pub(super) fn take(&mut self, departed: f64, takes: f64, link: &Link) {
        (_, self.full) = self.passed(departed, takes, link);
    }

    fn passed(&self, departed: f64, takes: f64, link: &Link) -> (f64, f64) {
        let there = departed + link.latency_ns;
        (there, self.full.max(there - takes) + takes)
    }

    /// Returns when the next frame may be handed over, if the sender may be ahead by `ahead_ns` or
    /// one frame.
    pub(super) fn free_at(&self, ahead_ns: f64) -> f64 {
        let ahead = match ahead_ns > 0.0 {
            true => self.last.max(ahead_ns),
            false => 0.0,
        };
        self.full - self.burst - ahead
    }
}

/// A frame between its sender's port and its receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameInFlight {
    pub(super) content: Sized,
    pub(super) bytes: u64,
    /// Time for which it occupies the ports.
    pub(super) takes: f64,
    pub(super) departed: f64,
    /// Whether one system call sends it with the previous frame.
    pub(super) along: bool,
}

/// One direction of an edge.
#[derive(Debug, Default)]
pub(super) struct Wire {
    pub(super) frames: VecDeque<FrameInFlight>,
    /// Bytes of the frames.
    pub(super) unread: u64,
    /// The ports, if each edge has its own.
    pub(super) send: PortQueue,
    pub(super) receive: PortQueue,
}

/// Time slice of a process while others wait: Linux has slices of 1 to 3 ms, and checks them every
/// 1 to 4 ms.
const SLICE_NS: u64 = 3_000_000;

/// A thread that needs a core: a PE by its index, followed by the threads that read or write files.
pub(super) type Thread = usize;

/// Cores that threads share. A thread keeps its core while it has work, so a receiver with a full
/// socket continues to read for any number of ready senders. When its time slice ends, the thread
/// that has waited longest runs. PEs sleep more than they work, so a scheduler runs them before
/// threads that work all the time.
#[derive(Debug)]
pub(super) struct Cores {
    pes: usize,
    /// Number of free cores; `None` if each thread has its own.
    free: Option<u32>,
    /// For each thread, since when it has had a core.
    since: Vec<Option<u64>>,
    /// The waiting PEs, and the other waiting threads.
    waiting: [VecDeque<Thread>; 2],
}

impl Cores {
    pub(super) fn new(shared: Option<u32>, pes: usize) -> Cores {
        Cores {
            pes,
            free: shared.map(|cores| cores.max(1)),
            since: Vec::new(),
            waiting: Default::default(),
        }
    }

    /// Returns whether a thread with work has a core for it. If not, it is queued, and must not ask
    /// again.
    pub(super) fn take(&mut self, now: u64, thread: Thread) -> bool {
        let Some(free) = &mut self.free else {
            return true;
        };
        if self.since.len() <= thread {
            self.since.resize(thread + 1, None);
        }
        let since = &mut self.since[thread];
        match free.checked_sub(1) {
            _ if since.is_some() => true,
            Some(left) => {
                (*free, *since) = (left, Some(now));
                true
            }
            None => {
                self.waiting[usize::from(thread >= self.pes)].push_back(thread);
                false
            }
        }
    }

    /// Returns whether a thread has to yield its core: its time slice is over and another thread
    /// waits, or a PE waits for the core of a thread that works on files.
    pub(super) fn is_over(&self, now: u64, thread: Thread) -> bool {
        let [pes, others] = &self.waiting;
        let since = self.since.get(thread).copied().flatten();
        let is_over = since.is_some_and(|since| now >= since.saturating_add(SLICE_NS));
        match pes.is_empty() {
            true => is_over && !others.is_empty(),
            false => is_over || thread >= self.pes,
        }
    }

    /// Takes the core of a thread, if it has one; returns the thread that gets it.
    pub(super) fn give_up(&mut self, now: u64, thread: Thread) -> Option<Thread> {
        let free = self.free.as_mut()?;
        self.since.get_mut(thread)?.take()?;
        let [pes, others] = &mut self.waiting;
        match pes.pop_front().or_else(|| others.pop_front()) {
            Some(next) => {
                self.since[next] = Some(now);
                Some(next)
            }
            None => {
                *free += 1;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PES: [Thread; 4] = [0, 1, 2, 3];

    #[test]
    fn who_has_a_core_keeps_it_and_the_others_get_theirs_in_turn() {
        let mut cores = Cores::new(Some(2), PES.len());
        let took = PES.map(|pe| cores.take(10, pe));
        assert_eq!(took, [true, true, false, false]);
        // Repeatedly, while two threads wait.
        assert!(cores.take(20, PES[1]));
        assert_eq!(cores.give_up(30, PES[1]), Some(PES[2]));
        assert_eq!(cores.give_up(40, PES[1]), None, "it has none any more");
        assert_eq!(cores.give_up(50, PES[0]), Some(PES[3]));
        assert_eq!(cores.give_up(60, PES[3]), None);
        assert!(cores.take(70, PES[0]), "one is free");
    }

    #[test]
    fn a_slice_ends_only_for_somebody_who_waits() {
        let mut cores = Cores::new(Some(1), PES.len());
        assert!(cores.take(5, PES[0]));
        assert!(!cores.is_over(5 + SLICE_NS, PES[0]));
        assert!(!cores.take(7, PES[1]));
        assert!(!cores.is_over(4 + SLICE_NS, PES[0]));
        assert!(cores.is_over(5 + SLICE_NS, PES[0]));
        // The next slice begins when its thread gets the core.
        let now = 5 + SLICE_NS;
        assert_eq!(cores.give_up(now, PES[0]), Some(PES[1]));
        assert!(!cores.take(now, PES[0]));
        assert!(!cores.is_over(now + SLICE_NS - 1, PES[1]));
        assert!(cores.is_over(now + SLICE_NS, PES[1]));
    }

    #[test]
    fn a_pe_does_not_wait_for_what_threads_do_with_files() {
        let mut cores = Cores::new(Some(1), PES.len());
        let (file, another) = (PES.len(), PES.len() + 1);
        assert!(cores.take(5, file));
        assert!(!cores.take(6, another));
        assert!(!cores.is_over(7, file), "it is of the same kind");
        assert!(!cores.take(8, PES[2]));
        assert!(cores.is_over(8, file));
        assert_eq!(cores.give_up(8, file), Some(PES[2]));
        assert!(!cores.is_over(9, PES[2]));
        assert_eq!(cores.give_up(9, PES[2]), Some(another));
    }

    #[test]
    fn cores_of_ones_own_are_always_there() {
        let mut cores = Cores::new(None, PES.len());
        assert!(PES.iter().all(|&pe| cores.take(0, pe)));
        assert!(PES.iter().all(|&pe| !cores.is_over(u64::MAX, pe)));
        assert_eq!(cores.give_up(1, PES[0]), None);
    }
}
