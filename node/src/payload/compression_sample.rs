//! A sample of a message, compressed as its flits would be.

use std::os::unix::fs::FileExt as _;

use flitcast_proto::Compression;
use flitcast_proto::cost::MadeOf;
use flitcast_proto::wire::packed;

use super::outgoing::Outgoing;
use crate::packing::FlitPacking;
use crate::system::clock;
use crate::tuning::compression::{SAMPLE_BYTES, SAMPLES};

impl Outgoing {
    /// Compresses blocks of the message's files at equal distances, and adds the estimated costs of its
    /// flits to the measurement. Files that cannot be read are left out; sending them fails.
    pub fn sample_compression(&mut self, compression: Compression) {
        let stride = (self.measured.bytes / SAMPLES).max(SAMPLE_BYTES as u64);
        let mut sample = CompressionSample {
            compression,
            ..CompressionSample::default()
        };
        // Positions in the content of all files in sequence: of the current one, and of the next byte that
        // belongs to a block.
        let (mut position, mut next) = (0, 0);
        let mut walk = self.walk();
        while let Some(found) = walk.next() {
            let Ok(mut found) = found else { continue };
            let bytes = found.entry.content_bytes();
            if position + bytes <= next {
                position += bytes;
                continue;
            }
            let Ok(file) = walk.open(&mut found) else {
                continue;
            };
            for (from, bytes) in found.entry.data() {
                while position + bytes > next {
                    let into = next - position;
                    let taken = sample.add(&file, from + into, bytes - into);
                    next += taken;
                    if taken == 0 {
                        break;
                    }
                    if sample.is_full() {
                        sample.compress();
                        next += stride - SAMPLE_BYTES as u64;
                    }
                }
                position += bytes;
                // A file may have become shorter.
                next = next.max(position);
            }
        }
        sample.compress();
        sample.estimate(&mut self.measured.made_of);
    }
}

/// Blocks of a message, and the costs of compressing them.
#[derive(Default)]
struct CompressionSample {
    compression: Compression,
    /// The current block, which may have parts of several files.
    block: Vec<u8>,
    unpacked: Vec<u8>,
    plain_bytes: u64,
    packed_bytes: u64,
    pack_ns: u64,
    unpack_ns: u64,
}

impl CompressionSample {
    fn is_full(&self) -> bool {
        self.block.len() == SAMPLE_BYTES
    }

    /// Fills the block from a file with at most `most` bytes; returns how many it got.
    fn add(&mut self, file: &std::fs::File, at: u64, most: u64) -> u64 {
        let held = self.block.len();
        let bytes = (SAMPLE_BYTES - held).min(usize::try_from(most).unwrap_or(SAMPLE_BYTES));
        self.block.resize(held + bytes, 0);
        let read = file.read_at(&mut self.block[held..], at).unwrap_or(0);
        self.block.truncate(held + read);
        read as u64
    }

    /// Compresses the block, as a connection would, and removes it. A block that does not become shorter
    /// counts as free, since connections then skip most flits.
    fn compress(&mut self) {
        let began = clock::of_thread_ns();
        let packed = FlitPacking::new(self.compression).pack([&[], &self.block]);
        let bytes = packed.as_ref().map_or(self.block.len(), Vec::len);
        if let Some(packed) = packed {
            let packed_at = clock::of_thread_ns();
            self.pack_ns += packed_at - began;
            // It has just been compressed.
            let _ = packed::unpack_any(&packed, SAMPLE_BYTES, &mut self.unpacked);
            self.unpack_ns += clock::of_thread_ns() - packed_at;
        }
        self.plain_bytes += self.block.len() as u64;
        self.packed_bytes += bytes as u64;
        self.block.clear();
    }

    /// Sets the costs of a MiB.
    fn estimate(&self, made_of: &mut MadeOf) {
        let of_mib = |part: u64| (part << 20) / self.plain_bytes.max(1);
        made_of.packed_bytes = of_mib(self.packed_bytes);
        made_of.pack_ns = of_mib(self.pack_ns);
        made_of.unpack_ns = of_mib(self.unpack_ns);
    }
}
