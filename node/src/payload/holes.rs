//! Writing of new files without their zeros: a new file reads as zeros where nothing was written,
//! and needs no disk space there. So files stay sparse even if their holes were sent as zeros.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Block size of most file systems, in bytes. A shorter run of zeros saves nothing.
const BLOCK_BYTES: u64 = 4096;

/// A regular file that is written from its beginning to its end, once.
#[derive(Debug)]
pub(super) struct NewFile {
    file: File,
    at: u64,
    /// End of the bytes that have been written, as an offset.
    written: u64,
}

impl NewFile {
    /// Wraps a file that is new, or of which an earlier run has written the first `written` bytes.
    pub fn new(file: File, written: u64) -> Self {
        Self {
            file,
            at: 0,
            written,
        }
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
            self.file.write_all_at(&bytes[..data], self.at)?;
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

    /// Sets the length of the file if it ends with zeros or a hole.
    pub fn finish(&self) -> io::Result<()> {
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
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::MetadataExt;

    /// Writes `content` in pieces of these lengths to a new file.
    fn written(content: &[u8], pieces: &[usize]) -> io::Result<File> {
        let mut file = NewFile::new(tempfile::tempfile()?, 0);
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
            pieces in prop::collection::vec(1usize..9_000, 1..4),
        ) {
            let mut content = Vec::new();
            for (is_zero, bytes) in runs {
                let byte = |place: usize| if is_zero { 0 } else { place as u8 };
                content.extend((0..bytes).map(byte));
            }
            let file = written(&content, &pieces).expect("a temporary file");
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
            let taken = written(&content, &[piece])?.metadata()?.blocks() * 512;
            assert!((1..=2 * 4096).contains(&taken), "{taken} bytes, by {piece}");
        }
        Ok(())
    }
}
