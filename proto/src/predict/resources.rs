//! What PEs have to wait for in virtual time: ports, the wires behind them, and cores.

use std::collections::VecDeque;

use crate::cost::Link;
use crate::round::Sized;

/// A send port or a receive port: frames pass it one after the other. Times are
/// nanoseconds, with fractions, so that rates are exact over many frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortQueue {
    /// When all that was handed over so far has passed, were there no burst.
    full: f64,
    /// When the last control frame has.
    slipped: f64,
    /// What the last frame took, and what the link lets through at once.
    last: f64,
    burst: f64,
}

impl PortQueue {
    /// A frame that takes so long is handed over at `now`; when its last byte departs.
    pub(super) fn depart(&mut self, now: f64, takes: f64, link: &Link) -> f64 {
        self.last = takes;
        self.burst = link.ns_per_byte * link.burst_bytes;
        self.full = self.full.max(now) + self.last;
        (self.full - self.burst).max(now)
    }

    /// A control frame: it slips in between two packets of a flit, and makes that later
    /// by as much.
    pub(super) fn slip_in(&mut self, now: f64, bytes: u64, link: &Link) -> f64 {
        let takes = link.ns_per_byte * bytes as f64;
        self.slipped = self.slipped.max(now) + takes;
        self.full = self.full.max(now) + takes;
        (self.slipped - link.ns_per_byte * link.burst_bytes).max(now)
    }

    /// A frame departed at `departed`; when its last byte will have arrived if it is
    /// the next to come in.
    pub(super) fn arrival(&self, departed: f64, takes: f64, link: &Link) -> f64 {
        let (there, full) = self.passed(departed, takes, link);
        (full - link.ns_per_byte * link.burst_bytes).max(there)
    }

    /// That frame is the next to come in.
    pub(super) fn take(&mut self, departed: f64, takes: f64, link: &Link) {
        (_, self.full) = self.passed(departed, takes, link);
    }

    fn passed(&self, departed: f64, takes: f64, link: &Link) -> (f64, f64) {
        let there = departed + link.latency_ns;
        (there, self.full.max(there - takes) + takes)
    }

    /// From when the next frame may be handed over, if the sender may run ahead by
    /// `ahead_ns` or one frame.
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
    /// For which it has the ports.
    pub(super) takes: f64,
    pub(super) departed: f64,
    /// It goes with the one before.
    pub(super) along: bool,
}

/// One direction of an edge.
#[derive(Debug, Default)]
pub(super) struct Wire {
    pub(super) frames: VecDeque<FrameInFlight>,
    /// Bytes of them.
    pub(super) unread: u64,
    /// The ports, where each edge has its own.
    pub(super) send: PortQueue,
    pub(super) receive: PortQueue,
}

/// What a scheduler lets a process run for while others wait: Linux has slices of 1 to 3 ms, and
/// looks at the clock every 1 to 4 ms.
const SLICE_NS: u64 = 3_000_000;

/// A thread of a PE's that needs a core: a PE by its index, and behind them those that read or
/// write files.
pub(super) type Thread = usize;

/// Cores that threads share. Who has one keeps it as long as there is something to do, so that a
/// receiver with a full socket goes on reading however many senders are ready; when a time slice
/// is over, it is the turn of who has waited longest. PEs sleep more than they work, so a
/// scheduler lets them run before threads that work all the time.
#[derive(Debug)]
pub(super) struct Cores {
    pes: usize,
    /// How many nobody has; `None` where each thread has its own.
    free: Option<u32>,
    /// Since when each thread has one.
    since: Vec<Option<u64>>,
    /// The PEs that wait, and the other threads that do.
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

    /// A thread has something to do: whether it has a core for it. If not, it waits for one, and
    /// must not ask again.
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

    /// Whether a thread is to give its core to somebody who waits: its time slice is over, or a
    /// PE can have what another thread has.
    pub(super) fn is_over(&self, now: u64, thread: Thread) -> bool {
        let [pes, others] = &self.waiting;
        let since = self.since.get(thread).copied().flatten();
        let is_over = since.is_some_and(|since| now >= since.saturating_add(SLICE_NS));
        match pes.is_empty() {
            true => is_over && !others.is_empty(),
            false => is_over || thread >= self.pes,
        }
    }

    /// A thread gives up its core, if it has one; who has it now.
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
        // Again and again, while two wait.
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
        // The next one's begins when it gets the core.
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
