//! What PEs have to wait for in virtual time: ports, the wires behind them, and cores.

use std::collections::VecDeque;

use crate::PeId;
use crate::cost::Link;
use crate::pe::{Control, Message};

/// A send port or a receive port: frames pass it one after the other. Times are
/// nanoseconds, with fractions, so that rates are exact over many frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Port {
    /// When all that was handed over so far has passed, were there no burst.
    full: f64,
    /// When the last control frame has.
    slipped: f64,
    /// What the last frame took, and what the link lets through at once.
    last: f64,
    burst: f64,
}

impl Port {
    /// A frame is handed over at `now`; when its last byte departs.
    pub(super) fn depart(&mut self, now: f64, bytes: u64, link: &Link) -> f64 {
        self.last = link.ns_per_byte * bytes as f64;
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
    pub(super) fn arrival(&self, departed: f64, bytes: u64, link: &Link) -> f64 {
        let (there, full) = self.passed(departed, bytes, link);
        (full - link.ns_per_byte * link.burst_bytes).max(there)
    }

    /// That frame is the next to come in.
    pub(super) fn take(&mut self, departed: f64, bytes: u64, link: &Link) {
        (_, self.full) = self.passed(departed, bytes, link);
    }

    fn passed(&self, departed: f64, bytes: u64, link: &Link) -> (f64, f64) {
        let there = departed + link.latency_ns;
        let takes = link.ns_per_byte * bytes as f64;
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

/// What a frame holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content {
    Control(Control),
    /// A flit with so many bytes of payload.
    Flit(Message, u64),
}

/// A frame between its sender's port and its receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) content: Content,
    pub(super) bytes: u64,
    pub(super) departed: f64,
}

/// One direction of an edge.
#[derive(Debug, Default)]
pub(super) struct Wire {
    pub(super) frames: VecDeque<Frame>,
    /// Bytes of them.
    pub(super) unread: u64,
    /// The ports, where each edge has its own.
    pub(super) send: Port,
    pub(super) receive: Port,
}

/// What a scheduler lets a process run for while others wait: Linux has slices of 1 to 3 ms, and
/// looks at the clock every 1 to 4 ms.
const SLICE_NS: u64 = 3_000_000;

/// Cores that PEs share. Who has one keeps it as long as there is something to do, so that a
/// receiver with a full socket goes on reading however many senders are ready; when a time slice
/// is over, it is the turn of who has waited longest.
#[derive(Debug)]
pub(super) struct Cores {
    /// How many nobody has; `None` where each PE has its own.
    free: Option<u32>,
    /// By PE: since when it has one.
    since: Vec<Option<u64>>,
    waiting: VecDeque<PeId>,
}

impl Cores {
    pub(super) fn new(shared: Option<u32>, pes: usize) -> Cores {
        Cores {
            free: shared.map(|cores| cores.max(1)),
            since: vec![None; pes],
            waiting: VecDeque::new(),
        }
    }

    /// A PE has something to do: whether it has a core for it. If not, it waits for one, and must
    /// not ask again.
    pub(super) fn take(&mut self, now: u64, pe: PeId) -> bool {
        let Some(free) = &mut self.free else {
            return true;
        };
        let since = &mut self.since[pe.index()];
        match free.checked_sub(1) {
            _ if since.is_some() => true,
            Some(left) => {
                (*free, *since) = (left, Some(now));
                true
            }
            None => {
                self.waiting.push_back(pe);
                false
            }
        }
    }

    /// Whether a PE's time slice is over, and somebody waits.
    pub(super) fn is_over(&self, now: u64, pe: PeId) -> bool {
        let since = self.since[pe.index()];
        !self.waiting.is_empty() && since.is_some_and(|since| now >= since + SLICE_NS)
    }

    /// A PE gives up its core, if it has one; who has it now.
    pub(super) fn give_up(&mut self, now: u64, pe: PeId) -> Option<PeId> {
        let free = self.free.as_mut()?;
        self.since[pe.index()].take()?;
        match self.waiting.pop_front() {
            Some(next) => {
                self.since[next.index()] = Some(now);
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

    const PES: [PeId; 4] = [PeId(0), PeId(1), PeId(2), PeId(3)];

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
    fn cores_of_ones_own_are_always_there() {
        let mut cores = Cores::new(None, PES.len());
        assert!(PES.iter().all(|&pe| cores.take(0, pe)));
        assert!(PES.iter().all(|&pe| !cores.is_over(u64::MAX, pe)));
        assert_eq!(cores.give_up(1, PES[0]), None);
    }
}
