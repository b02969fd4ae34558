//! Links of a chosen rate and latency: when a frame departs and when it arrives.
//! Arithmetic alone; the clock is the driver's, and so is the waiting.
//!
//! A shaped edge is a [`Link`] in each direction. A PE has one [`SendPort`] and one
//! [`ReceivePort`] for all of its shaped edges together: it sends one frame at a time
//! to one neighbour, and takes one at a time from one. Every time is worked out from
//! the one before and not from when somebody woke up, so errors do not add up.

use thiserror::Error;

use crate::Time;
use crate::cost::Link;
use crate::limits::{MAX_FLIT_BYTES, MAX_FLIT_PREFIX};

/// How far a sender may run ahead of the wire, as it may with the queue of a network
/// card: longer than a process takes to wake up, so that the wire is never idle
/// meanwhile, and short enough that little is committed before it need be. Where one
/// frame takes longer, it is one frame.
pub const RUN_AHEAD_NS: u64 = 500_000;

/// The longest latency: an edge is measured before it is used, which takes some round
/// trips, and a way over two satellites has half of this.
pub const MAX_LATENCY_NS: f64 = 1e9;

/// The lowest rate, 1 kbit/s, as time: at it a flit of 64 KiB takes nine minutes.
pub const MAX_NS_PER_BYTE: f64 = 8e6;

/// What may be under way on a link at a time, latency times rate: what is under way
/// lies in the buffers of a socket, and an unprivileged one has room for 4 MiB.
pub const MAX_UNDER_WAY_BYTES: f64 = (2 * 1024 * 1024) as f64;

/// No frame departs later than this after it was written: the longest one on the
/// slowest link, with another before it. A later time is one of another clock.
pub const MAX_AHEAD_NS: u64 = 2 * (MAX_FLIT_BYTES as u64 + MAX_FLIT_PREFIX as u64) * 8_000_000;

/// A link that cannot be had by shaping.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum ShapeFault {
    /// The latency.
    #[error("a latency of {:.0} ms is more than {:.0} ms", .0 / 1e6, MAX_LATENCY_NS / 1e6)]
    Latency(f64),
    /// The rate.
    #[error("{0} ns a byte is slower than 1 kbit/s")]
    Rate(f64),
    /// Rate and latency together.
    #[error(
        "{:.1} MiB would be under way at a time, more than the {} MiB that sockets have room for: choose a lower rate or a shorter latency",
        .0 / 1_048_576.0,
        MAX_UNDER_WAY_BYTES / 1_048_576.0
    )]
    UnderWay(f64),
    /// A burst, which no link here lets through.
    #[error("a shaped link lets no burst through")]
    Burst,
}

/// Whether frames can be carried as such a link carries them. All its numbers must be
/// finite and at least 0.
pub fn check(link: &Link) -> Result<(), ShapeFault> {
    let under_way = link.latency_ns / link.ns_per_byte;
    if link.latency_ns > MAX_LATENCY_NS {
        Err(ShapeFault::Latency(link.latency_ns))
    } else if link.ns_per_byte > MAX_NS_PER_BYTE {
        Err(ShapeFault::Rate(link.ns_per_byte))
    } else if link.ns_per_byte > 0.0 && under_way > MAX_UNDER_WAY_BYTES {
        Err(ShapeFault::UnderWay(under_way))
    } else if link.burst_bytes > 0.0 {
        Err(ShapeFault::Burst)
    } else {
        Ok(())
    }
}

/// When a frame arrives that finds the receive port free.
pub fn lands(departed: Time, link: &Link) -> Time {
    FineTime::from(departed).plus(link.latency_ns).rounded_up()
}

/// Through which a PE sends on all of its shaped edges.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendPort {
    busy_until: FineTime,
    /// When the last control frame has departed.
    slipped_until: FineTime,
    /// When the last frame's first byte departs.
    last_began: FineTime,
}

impl SendPort {
    /// A flit's frame of so many bytes is handed over: when its last byte departs.
    pub fn depart(&mut self, now: Time, bytes: usize, link: &Link) -> Time {
        self.last_began = FineTime::from(now).max(self.busy_until);
        self.busy_until = self.last_began.plus(link.occupied_ns(1, bytes as u64));
        // Rounded down here and up at the other end: one nanosecond in all.
        Time(self.busy_until.ns)
    }

    /// A control frame, a few bytes: it does not wait behind a flit that is still to
    /// depart, but slips in between two of its packets, and makes it later by as much.
    /// Several go one after the other. Where it goes to the same neighbour as the flit,
    /// it arrives behind that all the same: a connection keeps its order.
    pub fn slip_in(&mut self, now: Time, bytes: usize, link: &Link) -> Time {
        let takes = bytes as f64 * link.ns_per_byte;
        self.slipped_until = FineTime::from(now).max(self.slipped_until).plus(takes);
        self.busy_until = FineTime::from(now).max(self.busy_until).plus(takes);
        Time(self.slipped_until.ns)
    }

    /// From when on the next frame may be handed over: what is still to depart then
    /// is the last frame, or [`RUN_AHEAD_NS`] of frames if that is more.
    pub fn may_hand_over_at(&self) -> Time {
        let by_time = self.busy_until.ns.saturating_sub(RUN_AHEAD_NS);
        Time(self.last_began.ns.min(by_time))
    }
}

/// Through which a PE receives on all of its shaped edges.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceivePort {
    busy_until: FineTime,
}

impl ReceivePort {
    /// A frame comes in, which is so many flits, one or none: when its last byte arrives. Two
    /// that are sent at the same time come in one after the other, in the order in which this is
    /// asked: that should be the order in which they land ([`lands`]).
    pub fn arrive(&mut self, departed: Time, flits: u64, bytes: usize, link: &Link) -> Time {
        let landed = FineTime::from(departed).plus(link.latency_ns);
        let in_turn = self.busy_until.plus(link.occupied_ns(flits, bytes as u64));
        self.busy_until = landed.max(in_turn);
        self.busy_until.rounded_up()
    }
}

/// A point in time, exact to far below a nanosecond however great it is: one number
/// of 64 bits would not do.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
struct FineTime {
    ns: u64,
    /// Of a nanosecond, from 0 to below 1.
    fraction: f64,
}

impl From<Time> for FineTime {
    fn from(Time(ns): Time) -> FineTime {
        FineTime { ns, fraction: 0.0 }
    }
}

impl FineTime {
    fn plus(self, ns: f64) -> FineTime {
        let sum = self.fraction + ns;
        let whole = sum.floor();
        FineTime {
            ns: self.ns.saturating_add(whole as u64),
            fraction: sum - whole,
        }
    }

    fn max(self, other: FineTime) -> FineTime {
        if other > self { other } else { self }
    }

    /// What is awaited until then is not seen early.
    fn rounded_up(self) -> Time {
        Time(self.ns.saturating_add(u64::from(self.fraction > 0.0)))
    }
}

#[cfg(test)]
mod tests;
