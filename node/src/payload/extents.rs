//! The parts of a file that hold data: the rest are holes, which are neither read nor sent.
//!
//! On a file system that does not report holes, files have none. Only the longest `MAX_HOLES` holes
//! are listed, since the list is sent before the content; others are sent as zeros.
//!
//! New files are written without their zeros: a new file reads as zeros where nothing was written, and
//! needs no disk space there. So files stay sparse even if their holes were sent as zeros.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use rustix::fs::{SeekFrom, Stat, fstat, seek};
use rustix::io::Errno;

use super::direct::{BLOCK_BYTES, DirectWriter};

/// Maximum number of holes listed per file, which keeps an entry far below its maximum length.
pub(super) const MAX_HOLES: usize = 512;

/// Minimum length of a listed hole in bytes: skipping one costs as much as reading some pages.
const MIN_HOLE_BYTES: u64 = 64 << 10;

/// Unit of `st_blocks` in bytes.
const STAT_BLOCK_BYTES: u64 = 512;

/// Alternating lengths of the holes and of the data of a sparse file in bytes, a hole first; empty
/// for a file without holes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Extents(pub Vec<u64>);

impl Extents {
    /// Returns whether a file has no holes that would be listed, as far as its attributes show: nearly all
    /// files.
    pub fn are_none(found: &Stat) -> bool {
        let (size, blocks) = (found.st_size as u64, found.st_blocks as u64);
        size < MIN_HOLE_BYTES || blocks.saturating_mul(STAT_BLOCK_BYTES) >= size
    }

    /// Returns the holes that the file system reports for a file of `size` bytes.
    pub fn of(file: &File, size: u64) -> io::Result<Extents> {
        if Extents::are_none(&fstat(file)?) {
            return Ok(Extents::default());
        }
        let mut longest = BinaryHeap::with_capacity(MAX_HOLES + 1);
        let mut at = 0;
        while at < size {
            let Some(hole) = next(file, SeekFrom::Hole(at))?.filter(|hole| *hole < size) else {
                break;
            };
            let end = next(file, SeekFrom::Data(hole))?.map_or(size, |data| data.min(size));
            if end - hole >= MIN_HOLE_BYTES {
                longest.push(Reverse((end - hole, hole)));
                if longest.len() > MAX_HOLES {
                    longest.pop();
                }
            }
            // A file that is written to meanwhile must not prevent progress.
            at = end.max(hole + 1);
        }
        let holes = longest.into_iter().map(|Reverse((bytes, at))| (at, bytes));
        let mut holes: Vec<(u64, u64)> = holes.collect();
        holes.sort_unstable();
        Ok(Extents::between(&holes, size))
    }

    /// Returns the extents of a file with these holes, each given by its begin and its length.
    fn between(holes: &[(u64, u64)], size: u64) -> Extents {
        let mut lengths = Vec::new();
        let mut end = 0;
        for &(hole, bytes) in holes {
            if hole > end {
                if lengths.is_empty() {
                    lengths.push(0);
                }
                lengths.push(hole - end);
            }
            lengths.push(bytes);
            end = hole + bytes;
        }
        if end < size && !lengths.is_empty() {
            lengths.push(size - end);
        }
        Extents(lengths)
    }

    /// Returns the lengths received for a file of `size` bytes; `None` unless they are at most
    /// `2 * MAX_HOLES + 1`, add up to `size`, and only the first may be 0.
    pub fn parse(lengths: Vec<u64>, size: u64) -> Option<Extents> {
        let sum = lengths
            .iter()
            .try_fold(0u64, |sum, more| sum.checked_add(*more));
        let is_bounded = lengths.len() <= 2 * MAX_HOLES + 1;
        let is_plain = lengths.iter().skip(1).all(|bytes| *bytes > 0);
        let describes = lengths.is_empty() || sum == Some(size);
        (is_bounded && is_plain && describes).then_some(Extents(lengths))
    }

    /// Returns the begin and the length of each part of a file of `size` bytes that is data.
    pub fn data(&self, size: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let lengths = match self.0.is_empty() {
            true => vec![0, size],
            false => self.0.clone(),
        };
        let mut at = 0;
        let parts = (0..lengths.len().div_ceil(2)).map(move |part| {
            at += lengths[2 * part];
            let bytes = lengths.get(2 * part + 1).copied().unwrap_or(0);
            at += bytes;
            (at - bytes, bytes)
        });
        parts.filter(|(_, bytes)| *bytes > 0)
    }

    /// Returns the bytes of data in a file of `size` bytes.
    pub fn data_bytes(&self, size: u64) -> u64 {
        match self.0.is_empty() {
            true => size,
            false => self.0.iter().skip(1).step_by(2).sum(),
        }
    }
}

/// Returns the begin of the next hole or of the next data; `None` if there is none, or if the file
/// system does not report it.
fn next(file: &File, from: SeekFrom) -> io::Result<Option<u64>> {
    match seek(file, from) {
        Ok(at) => Ok(Some(at)),
        Err(Errno::NXIO | Errno::INVAL | Errno::OPNOTSUPP | Errno::SPIPE) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A regular file that is written from its beginning to its end, once.
#[derive(Debug)]
pub(super) struct NewFile {
    file: File,
    at: u64,
    /// End of the bytes that have been written, as an offset.
    written: u64,
    /// The writer without the page cache, if the file is long.
    direct: Option<DirectWriter>,
}

impl NewFile {
    /// Wraps a file that is new, or of which an earlier run has written the first `written` bytes.
    pub fn new(file: File, written: u64) -> Self {
        Self {
            file,
            at: 0,
            written,
            direct: None,
        }
    }

    /// Has all bytes written without the page cache in buffers of this length, if the file system can do that.
    pub fn write_directly(&mut self, buffer_bytes: usize) {
        self.direct = DirectWriter::new(&self.file, buffer_bytes).ok();
    }

    /// Removes the content behind the current position.
    pub fn truncate(&mut self) -> io::Result<()> {
        self.written = self.at;
        self.file.set_len(self.at)
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the current position: the number of bytes received, holes included.
    pub fn bytes(&self) -> u64 {
        self.at
    }

    /// Writes the next bytes, except for blocks of zeros.
    pub fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let zeros = self.blocks(bytes, is_zero);
            self.at += zeros as u64;
            bytes = &bytes[zeros..];
            let data = self.blocks(bytes, |piece| !is_zero(piece));
            match &mut self.direct {
                Some(direct) => direct.write(&bytes[..data], self.at)?,
                None => self.file.write_all_at(&bytes[..data], self.at)?,
            }
            self.at += data as u64;
            self.written = if data > 0 { self.at } else { self.written };
            bytes = &bytes[data..];
        }
        Ok(())
    }

    /// Leaves a hole up to `at`, which is not before the current position.
    pub fn skip_to(&mut self, at: u64) {
        self.at = at;
    }

    /// Completes the file, and sets its length if it ends with zeros or a hole.
    pub fn finish(&mut self) -> io::Result<()> {
        if let Some(direct) = self.direct.take() {
            direct.finish(&self.file)?;
        }
        if self.written < self.at {
            self.file.set_len(self.at)?;
        }
        Ok(())
    }

    /// Returns the number of leading bytes whose blocks all satisfy `is_so`. The first and the last
    /// block may be partial.
    fn blocks(&self, bytes: &[u8], is_so: impl Fn(&[u8]) -> bool) -> usize {
        let mut end = 0;
        while end < bytes.len() {
            let rest = &bytes[end..];
            let in_block = BLOCK_BYTES - (self.at + end as u64) % BLOCK_BYTES;
            let piece = &rest[..rest.len().min(in_block as usize)];
            if !is_so(piece) {
                break;
            }
            end += piece.len();
        }
        end
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // The first byte decides for nearly all data; the fold compares many bytes at a time.
    bytes.first() == Some(&0) && bytes.iter().fold(0, |all, byte| all | byte) == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileExt as _, MetadataExt};

    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    /// Creates a file of `size` bytes with data of 4 KiB at each of these positions.
    fn sparse(size: u64, places: impl IntoIterator<Item = u64>) -> io::Result<File> {
        let file = tempfile::tempfile()?;
        file.set_len(size)?;
        for place in places {
            file.write_all_at(&[7; 4096], place)?;
        }
        Ok(file)
    }

    fn data_of(file: &File, size: u64) -> io::Result<Vec<(u64, u64)>> {
        Ok(Extents::of(file, size)?.data(size).collect())
    }

    #[test]
    fn the_data_of_a_file_is_found() -> io::Result<()> {
        for (places, expected) in [
            (vec![], vec![]),
            (vec![0], vec![(0, 4096)]),
            (vec![MIB - 4096], vec![(MIB - 4096, 4096)]),
            (vec![MIB / 2], vec![(MIB / 2, 4096)]),
            (vec![0, MIB / 2], vec![(0, 4096), (MIB / 2, 4096)]),
        ] {
            let file = sparse(MIB, places)?;
            assert_eq!(data_of(&file, MIB)?, expected);
            let extents = Extents::of(&file, MIB)?;
            let bytes: u64 = expected.iter().map(|(_, bytes)| bytes).sum();
            assert_eq!(extents.data_bytes(MIB), bytes);
            let lengths = extents.0.clone();
            assert_eq!(Extents::parse(lengths, MIB), Some(extents));
        }
        // A file without holes has one part, and an empty file has none.
        let full = sparse(4096, [0])?;
        assert_eq!(data_of(&full, 4096)?, [(0, 4096)]);
        assert_eq!(data_of(&sparse(0, [])?, 0)?, []);
        Ok(())
    }

    #[test]
    fn of_many_holes_the_longest_are_kept() -> io::Result<()> {
        // Data every 128 KiB, and one longer hole.
        let places = (0..2000).filter(|at| !(1000..1010).contains(at));
        let size = 2000 * (MIB / 8);
        let file = sparse(size, places.map(|at| at * (MIB / 8)))?;
        let extents = Extents::of(&file, size)?;
        // The file ends with one of the holes.
        assert_eq!(extents.data(size).count(), MAX_HOLES);
        let left_out = 1000 * (MIB / 8)..1010 * (MIB / 8);
        let is_sent = |(at, bytes): (u64, u64)| left_out.contains(&at) && bytes > 4096;
        assert!(!extents.data(size).any(is_sent));
        assert!(extents.data_bytes(size) < size);
        Ok(())
    }

    /// Writes `content` in pieces of these lengths to a new file, in buffers of `direct` bytes if given.
    fn written(content: &[u8], pieces: &[usize], direct: Option<usize>) -> io::Result<File> {
        // Not in the folder of temporary files, which may be in memory.
        let mut file = NewFile::new(tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR"))?, 0);
        if let Some(bytes) = direct {
            file.write_directly(bytes);
        }
        let mut rest = content;
        for &piece in pieces.iter().cycle() {
            let (head, tail) = rest.split_at(piece.min(rest.len()));
            file.write(head)?;
            rest = tail;
            if rest.is_empty() {
                break;
            }
        }
        file.finish()?;
        assert_eq!(file.bytes(), content.len() as u64);
        Ok(file.file)
    }

    proptest! {
        #[test]
        fn the_content_read_is_the_content_written(
            runs in prop::collection::vec((any::<bool>(), 1usize..12_000), 0..6),
            pieces in prop::collection::vec(prop_oneof![1usize..9_000, 1usize..300], 1..4),
            direct in prop::option::of((1usize..4).prop_map(|blocks| blocks * 4096)),
        ) {
            let mut content = Vec::new();
            for (is_zero, bytes) in runs {
                let byte = |place: usize| if is_zero { 0 } else { place as u8 };
                content.extend((0..bytes).map(byte));
            }
            let file = written(&content, &pieces, direct).expect("a temporary file");
            let mut read = vec![1; content.len()];
            file.read_exact_at(&mut read, 0).expect("it is as long");
            prop_assert!(read == content);
            prop_assert_eq!(file.metadata().expect("it is open").len(), content.len() as u64);
        }
    }

    #[test]
    fn zeros_take_no_room() -> io::Result<()> {
        let mut content = vec![0; 1 << 20];
        content[500_000] = 1;
        // The hole has its full length, whatever the length of the pieces.
        for piece in [1000, 4096, 262_144, 1 << 20] {
            let taken = written(&content, &[piece], None)?.metadata()?.blocks() * 512;
            assert!((1..=2 * 4096).contains(&taken), "{taken} bytes, by {piece}");
        }
        Ok(())
    }
}
