//! Limits of frames, which are checked before memory is reserved.

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

/// Spans that a report has, at most: at 38 bytes each they take a thirteenth of a frame
/// on the control channel. A PE has four for each message that it relays and a few for
/// each neighbour, so this is enough for rounds of 16,000 messages.
pub const MAX_REPORT_SPANS: usize = 65_536;

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

/// Maximum length of the answer to a process that wants to join: a secret, an address and a few
/// numbers, or the reason for a refusal in a few sentences.
pub const MAX_WELCOME: usize = 16 * 1024;

/// Characters of a line that a command says on stderr, as it is passed on: longer ones are
/// cut into several. More than a terminal shows in one.
pub const MAX_LINE_CHARS: usize = 1000;

/// Lines that are kept of what a command said last on stderr: enough for what went wrong.
pub const MAX_LAST_LINES: usize = 5;

/// Maximum number of lines about entries of a result that are not taken: what a user can read.
pub const MAX_NOT_TAKEN: usize = 20;

/// Maximum length of the credentials on a process's standard input: a secret, two certificates of some
/// 500 bytes each and a key, with room for longer ones.
pub const MAX_ADMISSION: usize = 64 * 1024;
