//! Measured exchanges over an edge. The node performs them, and the coordinator computes costs and clock
//! offsets from them.

/// Number of flits of a burst that is divided into many, and maximum number for any other burst.
pub const BURST_FLITS: u32 = 64;

/// One measured exchange: a burst down (or none), a burst up (or none), and a small frame in each
/// direction that begins and ends it. Times are in nanoseconds; each end uses its own clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of the burst from parent to child, including framing.
    pub down_bytes: u64,
    /// Bytes of the burst from child to parent, including framing.
    pub up_bytes: u64,
    /// Number of flits of the burst beyond those of a usual burst of its size; they cause the
    /// additional time of such a burst.
    pub extra_flits: u32,
    /// Upper end: time before the first byte was sent.
    pub sent_ns: u64,
    /// Lower end: time when the last byte had arrived.
    pub received_ns: u64,
    /// Lower end: time before the first byte of the answer was sent.
    pub answered_ns: u64,
    /// Upper end: time when the last byte of the answer had arrived.
    pub returned_ns: u64,
}

impl Exchange {
    /// Returns whether the times of each end are in order; a peer may send any values.
    pub fn is_sound(&self) -> bool {
        self.sent_ns <= self.returned_ns
            && self.received_ns <= self.answered_ns
            && self.answered_ns - self.received_ns <= self.returned_ns - self.sent_ns
    }

    /// Returns the transfer time of both directions together.
    pub fn round_trip_ns(&self) -> u64 {
        (self.returned_ns - self.sent_ns) - (self.answered_ns - self.received_ns)
    }
}
