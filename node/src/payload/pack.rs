//! Reading of a message from its files, as a stream of bytes.
//!
//! Memory is bounded by one encoded entry and one open file, however long the message is. Content
//! is read directly into the caller's buffer.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use super::entry::{Entry, Mtime};
use super::error::PayloadError;
use super::inode::Inode;
use super::outgoing::Outgoing;
use super::scan::{FoundEntry, Walk};

/// Reader of a message from its files, which must still be as they were measured.
pub struct Packer {
    walk: Walk,
    /// The version that every entry must match, and the number of entries begun.
    message: Outgoing,
    begun: usize,
    /// Length in the message of the entries begun so far, in bytes.
    begun_bytes: u64,
    /// The current encoded entry, and how many bytes of it have been returned.
    head: Vec<u8>,
    head_sent: usize,
    body: Option<SourceFile>,
}

/// The content of the current regular file.
struct SourceFile {
    /// Shared by all readers of the message; each reads at its own position.
    file: Arc<File>,
    source: PathBuf,
    entry: Entry,
    /// The length of the file, of which the entry may be a part.
    file_bytes: u64,
    inode: Inode,
    /// Begin and length of the rest of the current part of data, and the parts behind it.
    at: u64,
    left: u64,
    rest: Box<dyn Iterator<Item = (u64, u64)> + Send>,
}

impl Packer {
    /// Opens a message that must still be the version that was measured.
    pub fn of(message: &Outgoing) -> Result<Self, PayloadError> {
        let mut packer = Self {
            walk: message.walk(),
            message: message.clone(),
            begun: 0,
            begun_bytes: 0,
            head: Vec::new(),
            head_sent: 0,
            body: None,
        };
        // The first entry is opened now, and not when other PEs wait for the first flit.
        packer.begin_entry()?;
        Ok(packer)
    }

    /// Fills `buf` unless the message ends; returns the number of bytes filled, and 0 from the end
    /// on. Exactly the measured bytes are returned in all. After an error the message cannot be
    /// continued.
    pub fn fill(&mut self, buf: &mut [u8]) -> Result<usize, PayloadError> {
        let mut filled = 0;
        while filled < buf.len() {
            let rest = &mut buf[filled..];
            if self.head_sent < self.head.len() {
                filled += self.fill_from_head(rest);
            } else if let Some(body) = &mut self.body {
                filled += body.fill(rest)?;
                self.end_body()?;
            } else if !self.begin_entry()? {
                break;
            }
        }
        Ok(filled)
    }

    /// Skips the next bytes of the message, without reading any content.
    pub fn skip(&mut self, mut bytes: u64) -> Result<(), PayloadError> {
        while bytes > 0 {
            let head = (self.head.len() - self.head_sent) as u64;
            if head > 0 {
                let skipped = head.min(bytes);
                self.head_sent += skipped as usize;
                bytes -= skipped;
            } else if let Some(body) = &mut self.body {
                let skipped = body.left.min(bytes);
                body.at += skipped;
                body.left -= skipped;
                bytes -= skipped;
                self.end_body()?;
            } else if !self.begin_entry()? {
                return Err(self.other_length());
            }
        }
        Ok(())
    }

    /// Returns the error if the length differs and no single file is at fault.
    fn other_length(&self) -> PayloadError {
        PayloadError::Changed(self.message.path().to_owned())
    }

    /// Ends the current file, if all of it was read.
    fn end_body(&mut self) -> Result<(), PayloadError> {
        let done = self.body.take_if(|body| body.is_done());
        done.map_or(Ok(()), |body| body.check_unchanged())
    }

    fn fill_from_head(&mut self, buf: &mut [u8]) -> usize {
        let head = &self.head[self.head_sent..];
        let bytes = head.len().min(buf.len());
        buf[..bytes].copy_from_slice(&head[..bytes]);
        self.head_sent += bytes;
        bytes
    }

    /// Begins the next entry; returns `false` at the end of the message.
    fn begin_entry(&mut self) -> Result<bool, PayloadError> {
        let Some(found) = self.walk.next() else {
            if self.begun_bytes < self.message.measured.bytes {
                return Err(self.other_length());
            }
            return Ok(false);
        };
        let mut found = found.map_err(as_change)?;
        self.message.check(self.begun, &found)?;
        let present = self.message.present.get(self.begun);
        found.entry.present = present.copied().flatten();
        self.begun += 1;
        let is_sent = found.entry.present.is_none();
        let file = match found.entry.is_file() && is_sent {
            true => Some(self.walk.open(&mut found).map_err(as_change)?),
            false => None,
        };
        let entry = &found.entry;
        // Checked before any byte of the entry is returned, so that the total is not exceeded.
        self.begun_bytes = entry
            .message_bytes()
            .and_then(|bytes| self.begun_bytes.checked_add(bytes))
            .filter(|&begun| begun <= self.message.measured.bytes)
            .ok_or_else(|| self.other_length())?;
        self.head = entry.encode();
        self.head_sent = 0;
        if let Some(file) = file {
            let FoundEntry {
                entry,
                source,
                inode,
                part,
                ..
            } = found;
            let (first, file_bytes) = part.unwrap_or((0, entry.size()));
            let mut body = SourceFile {
                file,
                source,
                at: 0,
                left: 0,
                rest: Box::new(entry.data().map(move |(at, bytes)| (first + at, bytes))),
                file_bytes,
                entry,
                inode,
            };
            body.check_unchanged()?;
            // A file without data needs no reading.
            self.body = (!body.is_done()).then_some(body);
        }
        Ok(true)
    }
}

impl SourceFile {
    /// Advances to the next part of data if the current one is used up; returns whether there is
    /// none.
    fn is_done(&mut self) -> bool {
        if self.left == 0
            && let Some(next) = self.rest.next()
        {
            (self.at, self.left) = next;
        }
        self.left == 0
    }

    fn fill(&mut self, buf: &mut [u8]) -> Result<usize, PayloadError> {
        let most = usize::try_from(self.left).map_or(buf.len(), |left| left.min(buf.len()));
        loop {
            match self.file.read_at(&mut buf[..most], self.at) {
                Ok(0) => return Err(PayloadError::Changed(self.source.clone())),
                Ok(bytes) => {
                    self.at += bytes as u64;
                    self.left -= bytes as u64;
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(PayloadError::io("read", &self.source)(error)),
            }
        }
    }

    /// Returns an error if the open file no longer matches its entry. Behind the last byte, this
    /// detects a file that grew or was overwritten in place.
    fn check_unchanged(&self) -> Result<(), PayloadError> {
        let found = fstat(&self.file).map_err(PayloadError::io("read", &self.source))?;
        let unchanged = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
            && found.st_size as u64 == self.file_bytes
            && Mtime::of(&found) == self.entry.mtime
            && self.inode.is_still(&found);
        match unchanged {
            true => Ok(()),
            false => Err(PayloadError::Changed(self.source.clone())),
        }
    }
}

/// Converts the error of an entry that no longer exists to [`PayloadError::Changed`].
fn as_change(error: PayloadError) -> PayloadError {
    match error {
        PayloadError::Io { path, source, .. }
            if matches!(
                Errno::from_io_error(&source),
                Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
            ) =>
        {
            PayloadError::Changed(path)
        }
        error => error,
    }
}
