//! The continuation of a message of which an earlier run has left a prefix.
//!
//! The prefix is replayed: the heads that the earlier run has written are processed like those of
//! an arriving message, with the existing entries in place of new ones, and the content of the
//! files is read from the disk and hashed. The files may have changed since, so the digest of the
//! prefix must be compared with that of the source.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flitcast_proto::wire::flit::Digest;
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, openat, readlinkat, unlinkat};
use rustix::io::Errno;

use super::super::error::PayloadError;
use super::super::extents::NewFile;
use super::super::leftovers::has_heads;
use super::super::staging::Target;
use super::{StagedFile, Unpacker};
use crate::activity_monitor::ActivityMonitor;
use crate::limits::DISK_BLOCK_BYTES;

/// The entries that exist in the staging place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    /// No entries: all are created.
    Nothing,
    /// The entries of a prefix that is measured. Nothing is changed.
    Measured,
    /// The entries of a prefix that is read.
    Read,
    /// Entries that may exist behind a prefix; they are replaced.
    Replaced,
}

impl Existing {
    /// Returns whether a prefix is being replayed.
    pub fn is_replay(self) -> bool {
        matches!(self, Existing::Measured | Existing::Read)
    }

    /// Removes an entry, other than a directory, that the run which left a prefix may have created behind
    /// it.
    pub fn make_way(self, here: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        if self != Existing::Replaced {
            return Ok(());
        }
        match unlinkat(here, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the length of the prefix that an earlier run of a job has left of a message for this
/// destination, an `archive` or not, in bytes; 0 if there is none that can be continued. No content is
/// read.
pub fn prefix_bytes(destination: PathBuf, job: u64, archive: bool) -> u64 {
    if !has_heads(&destination, job) {
        return 0;
    }
    let target = Target {
        destination,
        replace: true,
        job,
        is_kept: true,
        is_archive: archive,
        ..Target::default()
    };
    let measure = || {
        let mut unpacker = Unpacker::create(target, Arc::default())?;
        unpacker.replay(Existing::Measured, u64::MAX)?;
        Ok::<_, PayloadError>(unpacker.bytes)
    };
    measure().unwrap_or_else(|error| {
        tracing::debug!(%error, "the prefix cannot be used");
        0
    })
}

impl Unpacker {
    /// Continues a message behind a prefix of `bytes` bytes that an earlier run of the job has
    /// left, and returns the digest of the prefix. Reports progress to `pulse`.
    pub fn resume(
        target: Target,
        bytes: u64,
        pulse: Arc<ActivityMonitor>,
    ) -> Result<(Unpacker, Digest), PayloadError> {
        let mut unpacker = Unpacker::create(target, pulse)?;
        unpacker.replay(Existing::Read, bytes)?;
        if unpacker.bytes < bytes {
            return Err(unpacker.incomplete());
        }
        unpacker.existing = Existing::Replaced;
        let digest = unpacker.hash.finish_128().to_be_bytes();
        Ok((unpacker, digest))
    }

    /// Replays the prefix, up to `limit` bytes.
    fn replay(&mut self, existing: Existing, limit: u64) -> Result<(), PayloadError> {
        self.existing = existing;
        let Some(heads) = self.staging.heads() else {
            return Ok(());
        };
        let path = heads.path.clone();
        let opened = heads.open().map_err(PayloadError::io("read", &path))?;
        let mut log = BufReader::new(opened);
        let mut logged = 0;
        while self.bytes < limit {
            let ahead = log.fill_buf().map_err(PayloadError::io("read", &path))?;
            let left = usize::try_from(limit - self.bytes).unwrap_or(usize::MAX);
            let ahead = &ahead[..ahead.len().min(left)];
            if ahead.is_empty() {
                // The earlier run has not written the rest of the last head.
                self.bytes -= self.head.len() as u64;
                self.head.clear();
                break;
            }
            let read = ahead.len() - self.read_head(ahead)?.len();
            self.hash.write(&ahead[..read]);
            self.bytes += read as u64;
            logged += read as u64;
            log.consume(read);
            if let Some(body) = self.body.take()
                && !self.replay_body(body, limit)?
            {
                break;
            }
        }
        // An incomplete head is written when it is complete.
        logged -= self.head.len() as u64;
        if existing == Existing::Read
            && let Some(heads) = self.staging.heads()
        {
            let truncated = heads.truncate(logged);
            truncated.map_err(PayloadError::io("write", &path))?;
        }
        Ok(())
    }

    /// Replays the content of a file. Returns whether the file is complete; otherwise it is the
    /// last one, and is continued.
    fn replay_body(&mut self, mut body: StagedFile, limit: u64) -> Result<bool, PayloadError> {
        let path = body.entry.path.clone();
        let in_file = |error| PayloadError::io("read", &path)(error);
        let staged = body.file.file().metadata().map_err(in_file)?.len();
        loop {
            let there = body.end.min(staged).saturating_sub(body.file.bytes());
            let bytes = there.min(limit - self.bytes);
            match self.existing {
                Existing::Read => self.hash_content(&body, bytes).map_err(in_file)?,
                _ => self.bytes += bytes,
            }
            body.file.skip_to(body.file.bytes() + bytes);
            if body.file.bytes() < body.end {
                break;
            }
            if body.is_done() {
                self.finish_file(body)?;
                return Ok(true);
            }
        }
        if self.existing == Existing::Read {
            body.file.truncate().map_err(in_file)?;
        }
        self.body = Some(body);
        Ok(false)
    }

    /// Hashes the next bytes of a file.
    fn hash_content(&mut self, body: &StagedFile, bytes: u64) -> io::Result<()> {
        let mut block = vec![0; DISK_BLOCK_BYTES];
        let (mut at, end) = (body.file.bytes(), body.file.bytes() + bytes);
        while at < end {
            let most = usize::try_from(end - at).map_or(block.len(), |left| left.min(block.len()));
            let block = &mut block[..most];
            body.file.file().read_exact_at(block, at)?;
            self.hash.write(block);
            self.bytes += most as u64;
            at += most as u64;
            self.pulse.worked();
        }
        Ok(())
    }
}

/// Opens a file of a prefix.
pub(super) fn open_file(
    directory: BorrowedFd<'_>,
    name: &Path,
    existing: Existing,
) -> io::Result<NewFile> {
    let open = |access| {
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        openat(directory, name, flags, Mode::empty())
    };
    let opened = match existing {
        Existing::Measured => open(OFlags::RDONLY),
        // A complete file may have a mode that keeps its owner from writing.
        _ => match open(OFlags::RDWR) {
            Err(Errno::ACCESS) => open(OFlags::RDONLY).and_then(|file| {
                fchmod(&file, Mode::RUSR | Mode::WUSR)?;
                open(OFlags::RDWR)
            }),
            opened => opened,
        },
    };
    let file = File::from(opened?);
    let found = file.metadata()?;
    match found.is_file() {
        true => Ok(NewFile::new(file, found.len())),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Checks that a symlink of a prefix exists and has this target.
pub(super) fn check_symlink(
    directory: BorrowedFd<'_>,
    name: &OsStr,
    target: &Path,
) -> io::Result<()> {
    let found = readlinkat(directory, name, Vec::new())?;
    match found.to_bytes() == target.as_os_str().as_bytes() {
        true => Ok(()),
        false => Err(io::ErrorKind::InvalidData.into()),
    }
}
