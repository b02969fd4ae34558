//! Values that were found by measurements, or that follow from what hosts and networks do today. Limits
//! that protect a PE are in `limits.rs`.

/// Pacing of sends in turns.
pub mod pacer {
    /// Minimum number of bytes that are sent at once: two segments of TCP in frames of the usual 1500
    /// bytes, since receivers acknowledge every second one.
    pub const LEAST_BYTES: f64 = 2.0 * 1448.0;
    /// Time for which the link carries the bytes that are otherwise sent at once; a machine easily handles
    /// the resulting number of wake-ups.
    pub const AT_ONCE_NS: f64 = 1_000_000.0;
    /// Delay of a busy machine's alarms that may be compensated.
    pub const LATE_NS: f64 = 250_000.0;
}

/// Measurement of an edge.
pub mod probe {
    /// Length of the shortest burst.
    pub const SHORTEST_BYTES: u32 = 1024;
    /// Ratio of consecutive sizes: a bend in the curve is found between two sizes, but that takes a
    /// budget of this factor.
    pub const GROWTH: u32 = 2;
    /// Ratio of consecutive sizes if there is little time.
    pub const QUICK_GROWTH: u32 = 4;
    /// Number of sizes below which one is added between the last two.
    pub const FEW_SIZES: usize = 5;
    /// Budget below which there is little time.
    pub const QUICK_NS: u64 = 50_000_000;
    /// Length of the longest burst.
    pub const LONGEST_BYTES: u32 = 1024 * 1024;
    /// Flits of a burst, where they are small.
    pub const MAX_FLITS: u32 = flitcast_proto::exchange::BURST_FLITS;
    /// Length of the shortest burst that is cut into as many flits, of 64 bytes then: a multiple of
    /// them, so that all are equal.
    pub const SHORT_FROM: u32 = 64 * MAX_FLITS;
    /// Duration of a burst that can be timed to a few percent, together with one several times longer,
    /// by clocks and wake-ups with errors of 50 us.
    pub const LONG_ENOUGH_NS: u64 = 1_000_000;
    /// The fraction of a larger budget that replaces it.
    pub const BUDGET_SHARE: u64 = 128;
    /// A burst that is expected to take longer than this is not sent.
    pub const TOO_LONG_NS: u64 = 300_000_000;
    /// Minimum number of turns through all sizes, so that the densest of several times is meaningful.
    pub const LEAST_TURNS: u32 = 2;
    /// Maximum number of turns: more give no new information.
    pub const MOST_TURNS: u32 = 40;
    /// Factor by which a slow link may exceed the budget for the minimum number of turns.
    pub const OVERTIME: u64 = 40;
    /// Limit of that excess.
    pub const OVERTIME_NS: u64 = 1_500_000_000;
    /// Small exchanges in each turn.
    pub const SMALL: u32 = 2;
    /// Small exchanges if just the clocks are measured.
    pub const SMALL_FOR_CLOCKS: u32 = 10;
}

/// The sample of a message whose flits are compressed.
pub mod compression {
    /// Number of blocks: compressing them takes some milliseconds.
    pub const SAMPLES: u64 = 64;
    /// Bytes of a block: those of a usual flit.
    pub const SAMPLE_BYTES: usize = 64 * 1024;
}

/// Measurement of the costs of files.
pub mod gauge {
    /// Bytes of the long message, two copies of which are in memory at once.
    pub const LONG_BYTES: usize = 1 << 20;
    /// Bytes of each of many short files.
    pub const SHORT_BYTES: usize = 2048;
    /// Time for the syncs of the message of many files; it determines their number, within `FILES`.
    pub const SYNCING_NS: f64 = 40e6;
    /// Least and largest number of these files.
    pub const FILES: std::ops::RangeInclusive<usize> = 4..=32;
    /// Number of messages that are written at once, to measure how much their syncs overlap.
    pub const AT_ONCE: usize = 6;
    /// Number of tasks that are passed to a thread: a millisecond's work.
    pub const HAND_OVERS: usize = 64;
}

/// Measurement of what is not in the page cache.
pub mod cold {
    /// Maximum number of evenly spaced positions at which a file is probed.
    pub const PLACES: u64 = 8;
    /// Minimum distance of two positions in bytes: the kernel reads this much at once.
    pub const APART: u64 = 128 << 10;
}

/// Buffers of protected connections.
pub mod protected {
    /// Number of bytes that are read at once.
    pub const READ_AHEAD: usize = 64 * 1024;
    /// Number of full records that are encrypted and sent at once.
    pub const RECORDS_AT_ONCE: usize = 4;
}
