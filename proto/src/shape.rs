//! Links with a chosen rate and latency: the times at which frames depart and arrive. This module
//! only computes; the driver reads the clock and waits.
//!
//! A shaped edge is a [`Link`] in each direction. A PE has one [`SendPort`] and one [`ReceivePort`]
//! for all of its shaped edges together: it sends one frame at a time to one neighbour, and
//! receives one at a time from one. Every time is computed from the one before and not from the
//! actual wake-up, so errors do not accumulate.

use crate::Time;
use crate::cost::Link;
pub use crate::limits::{
    MAX_AHEAD_NS, MAX_LATENCY_NS, MAX_NS_PER_BYTE, MAX_UNDER_WAY_BYTES, RUN_AHEAD_NS,
};

/// Checks that a link can be shaped. All its numbers must be finite and at least 0.
///
/// # Errors
///
/// Returns the reason why shaping does not support the link.
pub fn check(link: &Link) -> Result<(), String> {
    let Link {
        latency_ns,
        ns_per_byte,
        ..
    } = *link;
    let under_way = latency_ns / ns_per_byte;
    Err(if latency_ns > MAX_LATENCY_NS {
        let (is, most) = (latency_ns / 1e6, MAX_LATENCY_NS / 1e6);
        format!("a latency of {is:.0} ms is more than {most:.0} ms")
    } else if ns_per_byte > MAX_NS_PER_BYTE {
        format!("{ns_per_byte} ns a byte is slower than 1 kbit/s")
    } else if ns_per_byte > 0.0 && under_way > MAX_UNDER_WAY_BYTES {
        let [is, most] = [under_way, MAX_UNDER_WAY_BYTES].map(|bytes| bytes / 1_048_576.0);
        format!(
            "{is:.1} MiB would be under way at a time, more than the {most} MiB that sockets have \
             room for: choose a lower rate or a shorter latency"
        )
    } else if link.burst_bytes > 0.0 {
        "a burst is not supported on a shaped link".to_owned()
    } else {
        return Ok(());
    })
}

/// Returns the arrival time of a frame if the receive port is free.
pub fn lands(departed: Time, link: &Link) -> Time {
    FineTime::from(departed).plus(link.latency_ns).rounded_up()
}

/// The port through which a PE sends on all of its shaped edges.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendPort {
    busy_until: FineTime,
    /// Departure of the last control frame.
    slipped_until: FineTime,
    /// Departure of the last frame's first byte.
    last_began: FineTime,
}

impl SendPort {
    /// Adds a flit's frame of `bytes` bytes, with which `packets` packets begin, one or none, and
    /// returns the departure of its last byte.
    pub fn depart(&mut self, now: Time, packets: u64, bytes: usize, link: &Link) -> Time {
        self.last_began = FineTime::from(now).max(self.busy_until);
        self.busy_until = self
            .last_began
            .plus(link.occupied_ns(packets, bytes as u64));
        // Rounded down here and up at the other end: at most one nanosecond in total.
        Time(self.busy_until.ns)
    }

    /// Adds a control frame of a few bytes and returns its departure. It does not wait behind a
    /// flit that is still to depart, but is sent between two of its packets and delays it
    /// accordingly. Several control frames are sent one after the other. If a control frame and the
    /// flit go to the same neighbour, the control frame still arrives behind the flit, because a
    /// connection keeps its order.
    pub fn slip_in(&mut self, now: Time, bytes: usize, link: &Link) -> Time {
        let takes = bytes as f64 * link.ns_per_byte;
        self.slipped_until = FineTime::from(now).max(self.slipped_until).plus(takes);
        self.busy_until = FineTime::from(now).max(self.busy_until).plus(takes);
        Time(self.slipped_until.ns)
    }

    /// Returns the earliest time to add the next frame. At that time, the last frame has yet to
    /// depart, or [`RUN_AHEAD_NS`] of frames if that is more.
    pub fn may_hand_over_at(&self) -> Time {
        let by_time = self.busy_until.ns.saturating_sub(RUN_AHEAD_NS);
        Time(self.last_began.ns.min(by_time))
    }
}

/// The port through which a PE receives on all of its shaped edges.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReceivePort {
    busy_until: FineTime,
}

impl ReceivePort {
    /// Adds a frame with which `packets` packets begin, one or none, and returns the arrival of its
    /// last byte. Frames that are sent at the same time arrive one after the other, in the order of
    /// the calls, which should be the order of [`lands`].
    pub fn arrive(&mut self, departed: Time, packets: u64, bytes: usize, link: &Link) -> Time {
        let landed = FineTime::from(departed).plus(link.latency_ns);
        let in_turn = self
            .busy_until
            .plus(link.occupied_ns(packets, bytes as u64));
        self.busy_until = landed.max(in_turn);
        self.busy_until.rounded_up()
    }
}

/// A point in time with a resolution far below a nanosecond for any value, which a single 64-bit
/// number does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
struct FineTime {
    ns: u64,
    /// Fraction of a nanosecond, from 0 to below 1.
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

    /// Returns the time rounded up, so that an event is not observed early.
    fn rounded_up(self) -> Time {
        Time(self.ns.saturating_add(u64::from(self.fraction > 0.0)))
    }
}

#[cfg(test)]
mod tests;
