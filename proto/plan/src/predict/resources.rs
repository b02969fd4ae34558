//! The resources of a network for which PEs wait in virtual time: ports, and the wires behind them.

use std::collections::VecDeque;

use flitcast_proto::round::Sized;

use crate::cost::Link;

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
