//! Streams a message made of files.
//!
//! Memory is bounded: one encoded entry and one open file, however long the
//! message. The file's bytes go straight to the caller's buffer.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use rustix::fs::{FileType, fstat};
use rustix::io::Errno;

use super::entry::{Entry, EntryKind, Mtime};
use super::error::PayloadError;
use super::scan::{Content, FoundEntry, Walk};

/// Reads a message from its files, and holds them to what was measured.
pub struct Packer {
    walk: Walk,
    /// Blamed when the sum is off and no single file can be.
    content: PathBuf,
    expected_bytes: u64,
    /// Bytes of the entries begun so far, to their ends.
    begun_bytes: u64,
    /// The encoded entry, and how much of it is still to be sent.
    head: Vec<u8>,
    head_sent: usize,
    body: Option<SourceFile>,
}

/// The content of the current regular file.
struct SourceFile {
    file: File,
    source: PathBuf,
    entry: Entry,
    remaining: u64,
}

impl Packer {
    /// Begins a message that [`Content::measure`] found to be `expected_bytes` long.
    pub fn open(content: &Content, expected_bytes: u64) -> Result<Self, PayloadError> {
        let mut packer = Self {
            walk: Walk::of(content),
            content: content.path().to_owned(),
            expected_bytes,
            begun_bytes: 0,
            head: Vec::new(),
            head_sent: 0,
            body: None,
        };
        // Now rather than with the first flit, when others wait already.
        packer.begin_entry()?;
        Ok(packer)
    }

    /// Fills the whole of `buf`, unless the message ends; then returns how much it
    /// filled, and 0 from there on. All `expected_bytes` have been given out by
    /// then, and never more. After an error the message is lost.
    pub fn fill(&mut self, buf: &mut [u8]) -> Result<usize, PayloadError> {
        let mut filled = 0;
        while filled < buf.len() {
            let rest = &mut buf[filled..];
            if self.head_sent < self.head.len() {
                filled += self.fill_from_head(rest);
            } else if let Some(body) = &mut self.body {
                filled += body.fill(rest)?;
                if body.remaining == 0 {
                    body.check_unchanged()?;
                    self.body = None;
                }
            } else if !self.begin_entry()? {
                break;
            }
        }
        Ok(filled)
    }

    fn fill_from_head(&mut self, buf: &mut [u8]) -> usize {
        let head = &self.head[self.head_sent..];
        let bytes = head.len().min(buf.len());
        buf[..bytes].copy_from_slice(&head[..bytes]);
        self.head_sent += bytes;
        bytes
    }

    /// Returns false at the end of the message.
    fn begin_entry(&mut self) -> Result<bool, PayloadError> {
        let Some(found) = self.walk.next() else {
            if self.begun_bytes < self.expected_bytes {
                return Err(PayloadError::changed(&self.content));
            }
            return Ok(false);
        };
        let found = found.map_err(as_change)?;
        let entry = &found.entry;
        // Checked before any of the entry is given out, so that the total is kept.
        self.begun_bytes = entry
            .message_bytes()
            .and_then(|bytes| self.begun_bytes.checked_add(bytes))
            .filter(|&begun| begun <= self.expected_bytes)
            .ok_or_else(|| PayloadError::changed(&self.content))?;
        self.head = entry.encode();
        self.head_sent = 0;
        if let EntryKind::File { size } = entry.kind {
            let file = self.walk.open(&found).map_err(as_change)?;
            let FoundEntry { entry, source } = found;
            let body = SourceFile {
                file,
                source,
                entry,
                remaining: size,
            };
            body.check_unchanged()?;
            // An empty file has no body to be read.
            self.body = (size > 0).then_some(body);
        }
        Ok(true)
    }
}

impl SourceFile {
    fn fill(&mut self, buf: &mut [u8]) -> Result<usize, PayloadError> {
        let most = usize::try_from(self.remaining).map_or(buf.len(), |left| left.min(buf.len()));
        loop {
            match self.file.read(&mut buf[..most]) {
                Ok(0) => return Err(PayloadError::changed(&self.source)),
                Ok(bytes) => {
                    self.remaining -= bytes as u64;
                    return Ok(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(PayloadError::io("read", &self.source)(error)),
            }
        }
    }

    /// Whether the open file still is what its entry says. After the last byte this
    /// finds a file that grew, or was overwritten in place.
    fn check_unchanged(&self) -> Result<(), PayloadError> {
        let found = fstat(&self.file).map_err(PayloadError::io("read", &self.source))?;
        let unchanged = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
            && found.st_size as u64 == self.entry.size()
            && Mtime::of(&found) == self.entry.mtime;
        if unchanged {
            Ok(())
        } else {
            Err(PayloadError::changed(&self.source))
        }
    }
}

/// What was there when the message was measured, and is not any more, has changed.
fn as_change(error: PayloadError) -> PayloadError {
    match error {
        PayloadError::Io { path, source, .. }
            if matches!(
                Errno::from_io_error(&source),
                Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
            ) =>
        {
            PayloadError::Changed { path }
        }
        error => error,
    }
}
