//! How long a frame may be. Checked before memory is reserved for it.

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

/// Neighbours of whom a PE tells what it has counted: a process has fewer connections.
pub const MAX_COUNTED_EDGES: usize = 65_536;

/// Deliveries between any two PEs, which are as many as PEs squared: so many lengths, numbers and
/// arrivals fit in a frame on the control channel.
pub const MAX_DELIVERIES: usize = 1 << 20;

/// Trees on which messages may go at once.
pub const MAX_LANES: usize = 16;

/// Of a frame on the control channel: 2^20 messages at 21 bytes each, and the tree.
pub const MAX_CONTROL_FRAME: usize = 32 * 1024 * 1024;

/// Of what is said on the control channel before it is known who says it, Join and Register: a
/// secret, an address, the name of a clock and a few numbers.
pub const MAX_GREETING: usize = 4 * 1024;

/// Of the answer to who wants to join: a secret, an address and a few numbers, or why not,
/// in a few sentences.
pub const MAX_WELCOME: usize = 16 * 1024;

/// Characters of a line that a command says on stderr, as it is passed on: longer ones are
/// cut into several. More than a terminal shows in one.
pub const MAX_LINE_CHARS: usize = 1000;

/// Lines that are kept of what a command said last on stderr: enough for what went wrong.
pub const MAX_LAST_LINES: usize = 5;

/// Of what a process is told on its standard input: a secret, two certificates of some
/// 500 bytes each and a key, with room for longer ones.
pub const MAX_ADMISSION: usize = 64 * 1024;
