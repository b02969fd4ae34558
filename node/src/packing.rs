//! Compression of flits by one end of a connection.
//!
//! A flit that does not become shorter by an eighth is sent as it is, and so are the next ones: first
//! one, then twice as many each time. So data that cannot be compressed costs little.

use flitcast_proto::Compression;
use flitcast_proto::wire::packed;

/// Least length of a flit that is compressed: a shorter one saves no packet.
const LEAST_BYTES: usize = 1024;
/// A flit must become shorter by one part of this number.
const SAVED_PART: usize = 8;
/// Maximum number of flits that are sent as they are before the next sample.
const MOST_SKIPPED: u32 = 63;

/// The state of a connection's compression, in both directions.
#[derive(Debug, Default)]
pub struct FlitPacking {
    compression: Compression,
    plain: Vec<u8>,
    /// Number of flits that are sent as they are before the next sample, and after the next failure.
    skipped: u32,
    skips_next: u32,
    /// The received flit, if it was compressed.
    pub unpacked: Vec<u8>,
    pub is_unpacked: bool,
}

impl FlitPacking {
    pub fn new(compression: Compression) -> FlitPacking {
        FlitPacking {
            compression,
            ..FlitPacking::default()
        }
    }

    /// Compresses a flit; returns `None` if it is sent as it is.
    pub fn pack(&mut self, pieces: [&[u8]; 2]) -> Option<Vec<u8>> {
        let bytes = pieces[0].len() + pieces[1].len();
        if bytes < LEAST_BYTES || packed::is_packed(pieces[0]) {
            return None;
        }
        if self.skipped > 0 {
            self.skipped -= 1;
            return None;
        }
        self.plain.clear();
        pieces
            .iter()
            .for_each(|piece| self.plain.extend_from_slice(piece));
        let packed = packed::pack(self.compression, &self.plain, bytes - bytes / SAVED_PART);
        self.skips_next = match packed {
            Some(_) => 0,
            None => (2 * self.skips_next + 1).min(MOST_SKIPPED),
        };
        self.skipped = self.skips_next;
        packed
    }
}
