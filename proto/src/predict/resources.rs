//! What PEs have to wait for in virtual time: ports, the wires behind them, and cores.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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

/// Cores that PEs share, first come first served.
#[derive(Debug)]
pub(super) struct Cores {
    /// When each is free.
    free: Option<BinaryHeap<Reverse<u64>>>,
}

impl Cores {
    pub(super) fn new(shared: Option<u32>) -> Cores {
        let free = shared.map(|cores| (0..cores.max(1)).map(|_| Reverse(0)).collect());
        Cores { free }
    }

    /// Work of `work` nanoseconds that could begin at `from`; when it is done.
    pub(super) fn work(&mut self, from: u64, work: u64) -> u64 {
        let Some(free) = &mut self.free else {
            return from.saturating_add(work);
        };
        let Reverse(first) = free.pop().unwrap_or(Reverse(0));
        let done = first.max(from).saturating_add(work);
        free.push(Reverse(done));
        done
    }
}
