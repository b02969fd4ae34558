//! Limits, most of which are checked before memory is reserved, and values found by measurements.

/// The big-endian length in front of every frame.
pub const LENGTH_BYTES: usize = 4;

/// The payload of a flit. A PE holds one flit of a passing message; beyond a
/// megabyte a longer one saves no system call worth its memory.
pub const MAX_FLIT_BYTES: u32 = 1024 * 1024;

/// A flit below this would be mostly prefix.
pub const MIN_FLIT_BYTES: u32 = 64;

/// A flit's bytes ahead of its payload: length, seal, two nested keys and lengths, a
/// head with four full-width numbers, a digest, the payload's key and length.
pub const MAX_FLIT_PREFIX: usize = 96;

/// Spans that a report has, at most: at 45 bytes each they take an eleventh of a frame
/// on the control channel. A PE has four for each message that it relays and a few for
/// each neighbour, so this is enough for rounds of 16,000 messages.
pub const MAX_REPORT_SPANS: usize = 65_536;

/// Number of bytes of forwarded messages that a PE stores in memory; further bytes go into a file.
pub const HELD_IN_MEMORY: usize = 64 << 20;

/// Maximum number of parts of a message: more than a network of any dimension has directions and
/// classes of flits.
pub const MAX_PARTS: u32 = 64;

/// Limit of neighbours whose counters a PE reports: a process has fewer connections.
pub const MAX_COUNTED_EDGES: usize = 65_536;

/// Limit of deliveries between any two PEs, which are as many as PEs squared: this number of lengths,
/// numbers and arrivals fits into a frame on the control channel.
pub const MAX_DELIVERIES: usize = 1 << 20;

/// Trees on which messages may go at once.
pub const MAX_LANES: usize = 16;

/// Maximum length of a frame on the control channel: 2^20 messages at 21 bytes each, and the tree.
pub const MAX_CONTROL_FRAME: usize = 32 * 1024 * 1024;

/// Memory that the lists of a control frame may take once decoded, for each byte of the frame: an
/// element of any list that a process sends has a quarter of its memory on the wire.
pub const DECODED_PER_BYTE: usize = 4;

/// Memory that they may take in any case: lists of short elements, such as neighbours without an
/// address, have a few thousand.
pub const DECODED_ALLOWANCE: usize = 4 * 1024 * 1024;

/// Returns the maximum length of a frame that a PE may send on the control channel, in a cluster of
/// `pes` PEs: [`MAX_REPORT_SPANS`], and for each PE an arrival, the counters of an edge and the content
/// of its messages.
pub const fn max_frame_of_pe(pes: usize) -> usize {
    let bytes = 4 * 1024 * 1024 + 512 * pes;
    if bytes < MAX_CONTROL_FRAME {
        bytes
    } else {
        MAX_CONTROL_FRAME
    }
}

/// Maximum length of a message from an unauthenticated process on the control channel, Join or
/// Register: a secret, an address, the name of a clock and a few numbers.
pub const MAX_GREETING: usize = 4 * 1024;

/// Maximum length of the answer to a join request: a secret, an address and a few
/// numbers, or the reason for a refusal in a few sentences.
pub const MAX_WELCOME: usize = 16 * 1024;

/// Characters of a line that a command writes to stderr, as it is passed on: longer ones are
/// cut into several. More than a terminal shows in one.
pub const MAX_LINE_CHARS: usize = 1000;

/// Lines that are kept of a command's last output on stderr: enough for the cause of a failure.
pub const MAX_LAST_LINES: usize = 5;

/// Maximum number of commands that a PE runs at once: more than a host has processors.
pub const MAX_JOBS: usize = 1024;

/// Maximum number of lines about entries of a result that are not taken: what a user can read.
pub const MAX_NOT_TAKEN: usize = 20;

/// Maximum length of the credentials on a process's standard input: a secret, two certificates of some
/// 500 bytes each and a key, with room for longer ones.
pub const MAX_ADMISSION: usize = 64 * 1024;

/// Minimum number of bytes to read at once; bytes behind a short frame are moved once.
pub const READ_AHEAD_BYTES: usize = 16 << 10;

/// Number of bytes to read before a frame's length is known, if nothing may be read ahead. It is
/// enough for most control frames, and less than the shortest message in one flit (50 bytes: a
/// seal, a head, a digest and a byte), so that the buffer never contains two. (A stamp has 30
/// bytes, and the first bytes of its frame come with it.)
pub const FIRST_READ_BYTES: usize = 39;

/// Time by which a sender may run ahead of the wire, like the queue of a network card. It is longer
/// than the wake-up of a process, so that the wire is never idle meanwhile, and short enough that
/// few frames are committed early. If one frame takes longer, it is one frame.
pub const RUN_AHEAD_NS: u64 = 500_000;

/// Maximum latency. An edge is measured before it is used, which takes some round trips; a path
/// over two satellites has half of this.
pub const MAX_LATENCY_NS: f64 = 1e9;

/// Minimum rate, 1 kbit/s, as time per byte: a flit of 64 KiB takes nine minutes.
pub const MAX_NS_PER_BYTE: f64 = 8e6;

/// Maximum number of bytes in transit on a link: latency times rate. They are in the buffers of a
/// socket, and an unprivileged process can have 4 MiB.
pub const MAX_UNDER_WAY_BYTES: f64 = (2 * 1024 * 1024) as f64;

/// Maximum time from the write of a frame to its departure: that of the longest frame on the
/// slowest link, with another before it. A later time is from another clock.
pub const MAX_AHEAD_NS: u64 = 2 * (MAX_FLIT_BYTES as u64 + MAX_FLIT_PREFIX as u64) * 8_000_000;

/// Maximum number of bytes of consecutive short frames to one neighbour that one system call
/// writes, and that one reads: copying them costs a fraction of a call.
pub const COALESCE_LIMIT_BYTES: usize = 16 << 10;

/// Number of times that a PE polls for the next short message before it sleeps; in between, it
/// yields its core. On one machine the message arrives sooner than a sleeping thread wakes up. On
/// an idle core this takes about 30 us, plus the time to poll the connections.
pub const POLL_ATTEMPTS: usize = 40;

/// Maximum length of the messages for which a PE polls before it sleeps. Longer messages arrive
/// later, and copying them needs the core.
pub const POLL_MAX_MESSAGE_BYTES: u64 = 128 << 10;

/// Maximum length of messages that wait for others.
pub const SHORT_MESSAGE_BYTES: u64 = 4 << 10;

/// Bytes that several senders may send to a PE at once. Any switch is assumed to store them, beside the
/// packets of acknowledgements: the shortest queues have 16 KiB.
pub const SHORT_QUEUE_BYTES: u64 = 8 << 10;
