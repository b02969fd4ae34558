//! Outgoing messages, each of one version: a reading returns what was measured, or fails.

use std::fs::File;
use std::hash::Hasher as _;
use std::io::IoSliceMut;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use flitcast_proto::cost::MadeOf;
use flitcast_proto::wire::packed;
use flitcast_proto::{Compression, Unkept};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use twox_hash::XxHash3_64;

use super::entry::{Content, Entry, Present};
use super::error::PayloadError;
use super::inode::Inode;
use super::scan::{FoundEntry, Walk};
use crate::packing::FlitPacking;
use crate::system::clock;
use crate::tuning::cold::{APART, PLACES};
use crate::tuning::compression::{SAMPLE_BYTES, SAMPLES};

impl Content {
    /// Returns the exact length of the message in bytes, unless a part of it cannot be read or must
    /// not be sent.
    pub fn measure(&self) -> Result<u64, PayloadError> {
        self.measure_with(false, &|| {})
            .map(|measured| measured.bytes)
    }

    /// Measures the message, its state and what it is made of, as an archive if `archive`; calls
    /// `on_progress` for each entry.
    pub(super) fn measure_with(
        &self,
        archive: bool,
        on_progress: &dyn Fn(),
    ) -> Result<Measured, PayloadError> {
        let mut bytes: u64 = 0;
        let mut entries = 0;
        let mut looked_at = Sample::default();
        let (mut states, mut state) = (Vec::new(), XxHash3_64::new());
        let mut walk = Walk::of(self).archiving(archive);
        while let Some(found) = walk.next() {
            let mut found = found?;
            if found.entry.is_file() {
                let is_sampled = looked_at.is_next();
                if is_sampled || !found.is_plain {
                    // This checks that other users' files can be read.
                    let file = walk.open(&mut found)?;
                    if is_sampled {
                        looked_at.look(&file, &found.entry);
                    }
                }
                looked_at.count(&found.entry);
            }
            entries += 1;
            let of_entry = found.state();
            state.write(&of_entry.to_le_bytes());
            // Half of the hash is enough to distinguish two entries at the same place.
            states.push(of_entry as u32);
            bytes = found
                .entry
                .message_bytes()
                .and_then(|more| bytes.checked_add(more))
                .ok_or(PayloadError::TooLong(found.source))?;
            on_progress();
        }
        Ok(Measured {
            bytes,
            made_of: MadeOf {
                entries,
                cold_bytes: looked_at.cold_bytes(),
                ..MadeOf::default()
            },
            left_out: walk.left_out,
            unkept: walk.unkept,
            state: state.finish(),
            entries: states.into(),
        })
    }
}

/// Result of measuring a message before it is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Exact length in bytes.
    pub bytes: u64,
    /// Number of entries, and number of bytes that are not in memory.
    pub made_of: MadeOf,
    /// Number of files and folders that are not sent, since they have hidden names of Flitcast.
    pub left_out: u64,
    /// The entries some of whose attributes are not sent.
    pub unkept: Unkept,
    /// A hash of the states of all entries, the inodes included.
    pub state: u64,
    /// The low half of the state of each entry, in the order in which they are sent.
    pub(super) entries: Arc<[u32]>,
}

/// Sample of a message's files, from which the number of bytes that are not in memory is estimated:
/// the first files, and fewer and fewer of the later ones.
#[derive(Default)]
struct Sample {
    files: u64,
    bytes: u64,
    looked_at: u64,
    cold: u64,
}

impl Sample {
    /// Number of first files that are all examined.
    const FIRST: u64 = 64;

    /// Returns whether the next file is examined.
    fn is_next(&self) -> bool {
        let every = (self.files / Self::FIRST).next_power_of_two();
        self.files.is_multiple_of(every)
    }

    fn look(&mut self, file: &File, entry: &Entry) {
        for (at, bytes) in entry.data() {
            self.looked_at += bytes;
            self.cold += cold_bytes(file, at, bytes);
        }
    }

    fn count(&mut self, entry: &Entry) {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(entry.content_bytes());
    }

    fn cold_bytes(&self) -> u64 {
        let all = u128::from(self.bytes) * u128::from(self.cold);
        (all / u128::from(self.looked_at.max(1))) as u64
    }
}

/// A measured message. A reading fails if the files are no longer in the state measured.
#[derive(Clone, Debug)]
pub struct Outgoing {
    content: Content,
    /// Whether entries have all attributes that an archive keeps.
    archive: bool,
    pub measured: Measured,
    /// The open file, and its inode, of a message that is one file and kept open. Another file may
    /// then be renamed over it.
    file: Option<(Arc<File>, Inode)>,
    /// The entries whose content is not sent, by their place in the message; empty if all is sent.
    pub(super) present: Arc<[Option<Present>]>,
}

impl Outgoing {
    pub fn new(content: Content, archive: bool, measured: Measured) -> Outgoing {
        Outgoing {
            content,
            archive,
            measured,
            file: None,
            present: Arc::default(),
        }
    }

    /// Measures `content`, as an archive if `archive`, and calls `on_progress` for each entry.
    pub fn measure(
        content: Content,
        archive: bool,
        on_progress: &dyn Fn(),
    ) -> Result<Outgoing, PayloadError> {
        let measured = content.measure_with(archive, on_progress)?;
        Ok(Outgoing::new(content, archive, measured))
    }

    /// Opens the file and keeps it open, if the message is one file.
    pub fn hold_open(&mut self) -> Result<(), PayloadError> {
        if let Content::Entry(path) = &self.content
            && path.is_file()
        {
            let mut walk = self.walk();
            if let Some(found) = walk.next() {
                let mut found = found?;
                self.check(0, &found)?;
                self.file = Some((walk.open(&mut found)?, found.inode));
            }
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        self.content.path()
    }

    pub(super) fn walk(&self) -> Walk {
        let walk = match &self.file {
            Some((file, inode)) => Walk::of_open(self.path(), file.clone(), *inode),
            None => Walk::of(&self.content),
        };
        walk.archiving(self.archive)
    }

    /// Returns an error if the entry at index `place` of the message was measured differently.
    pub(super) fn check(&self, place: usize, found: &FoundEntry) -> Result<(), PayloadError> {
        match self.measured.entries.get(place) {
            Some(state) if *state == found.state() as u32 => Ok(()),
            _ => Err(PayloadError::Changed(found.source.clone())),
        }
    }
}

/// Estimates how many of `size` bytes of a file from `begin` on are not in memory. Reads single
/// bytes without waiting for the disk; if the kernel does not support that, all bytes count as
/// present.
pub(super) fn cold_bytes(file: &File, begin: u64, size: u64) -> u64 {
    let places = size.div_ceil(APART).min(PLACES);
    let is_cold = |place: &u64| {
        let mut byte = [0];
        let at = begin + (u128::from(*place) * u128::from(size) / u128::from(places)) as u64;
        let read = preadv2(
            file,
            &mut [IoSliceMut::new(&mut byte)],
            at,
            ReadWriteFlags::NOWAIT,
        );
        read == Err(Errno::AGAIN)
    };
    let cold = (0..places).filter(is_cold).count() as u64;
    match places {
        0 => 0,
        _ => (u128::from(size) * u128::from(cold) / u128::from(places)) as u64,
    }
}

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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_was_just_written_is_in_memory() -> std::io::Result<()> {
        let mut file = tempfile::tempfile()?;
        file.write_all(&[1; 300_000])?;
        assert_eq!(cold_bytes(&file, 0, 300_000), 0);
        assert_eq!(cold_bytes(&file, 100_000, 200_000), 0);
        assert_eq!(cold_bytes(&file, 0, 0), 0);
        Ok(())
    }
}
