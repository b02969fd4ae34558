//! The heads of the entries in a partial message, in a file beside it.
//!
//! The files of a partial message have the content that has arrived. To continue the message, a
//! later run also needs the heads of its entries: their kinds, lengths, modes and times. A head is
//! written after its entry has been created, so the entry of each head exists.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use rustix::fs::OFlags;

use super::removal::remove;

/// The file with the heads of one partial message.
#[derive(Debug)]
pub(super) struct Heads {
    pub path: PathBuf,
    /// The open file; `None` until it has been created.
    file: Option<File>,
    /// Heads that have not been written yet.
    pending: Vec<u8>,
}

impl Heads {
    /// Creates the heads at a path, which is not accessed yet.
    pub fn at(path: PathBuf) -> Heads {
        Heads {
            path,
            file: None,
            pending: Vec::new(),
        }
    }

    /// Adds an encoded head, which [`Heads::flush`] writes.
    pub fn push(&mut self, head: &[u8]) {
        self.pending.extend_from_slice(head);
    }

    /// Writes the heads that were added. Fails if another process has created the file.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut options = OpenOptions::new();
                let options = options.append(true).create_new(true).mode(0o600);
                none.insert(options.open(&self.path)?)
            }
        };
        file.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }

    /// Opens the file that an earlier run has left, for reading from its beginning and for
    /// appending.
    pub fn open(&mut self) -> io::Result<File> {
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let mut options = OpenOptions::new();
        let options = options.read(true).append(true);
        let file = options.custom_flags(flags.bits() as i32).open(&self.path)?;
        self.file = Some(file.try_clone()?);
        Ok(file)
    }

    /// Removes what the file has behind its first `bytes` bytes.
    pub fn truncate(&self, bytes: u64) -> io::Result<()> {
        let file = self.file.as_ref();
        file.map_or(Ok(()), |file| file.set_len(bytes))
    }

    pub fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}
