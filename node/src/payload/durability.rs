//! The time at which the entries of a folder become durable: each when it is complete, or all small
//! ones together.
//!
//! A sync of one file waits for the journal of the file system, whatever the file's length, so 10,000
//! syncs take seconds. One sync of the whole file system takes as long as a few of them, unless other
//! programs have written much that the disk does not have yet.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use flitcast_proto::cost::{LARGE_FILE_BYTES, SYNCED_ALONE};
use rustix::fs::{fstatfs, syncfs};

use super::staging::sync_directory;
use crate::system::memory;

/// Bytes of small files that are synced together. A power cut or a full disk costs no more, and the
/// sync at the end of a message waits for no more.
const MAX_UNSYNCED_BYTES: u64 = 64 << 20;
/// Bytes of other programs that the disk does not have yet: with more, files are synced one by one.
const MAX_FOREIGN_BYTES: f64 = 256e6;
/// File systems of which a sync writes everything and reports errors: ext2 to ext4, XFS, Btrfs, F2FS,
/// tmpfs and overlayfs, by their numbers in `statfs`.
const KNOWN_FILE_SYSTEMS: [u64; 6] = [
    0xEF53,
    0x5846_5342,
    0x9123_683E,
    0xF2F5_2010,
    0x0102_1994,
    0x794C_7630,
];

/// The unsynced small entries of a message.
#[derive(Debug)]
pub(super) struct Unsynced {
    /// The folder of the message, opened before anything was written to it: its sync reports errors of
    /// writing since then. `None` if each entry is synced when it is complete.
    folder: Option<OwnedFd>,
    /// The number of entries so far.
    entries: u64,
    bytes: u64,
    is_any: bool,
}

impl Unsynced {
    /// Syncs each entry when it is complete.
    pub fn never() -> Unsynced {
        Unsynced {
            folder: None,
            entries: 0,
            bytes: 0,
            is_any: false,
        }
    }

    /// Syncs the small entries of a new folder together, if that is quicker where the folder is.
    pub fn below(folder: BorrowedFd<'_>) -> Unsynced {
        let is_known =
            fstatfs(folder).is_ok_and(|about| KNOWN_FILE_SYSTEMS.contains(&(about.f_type as u64)));
        let is_ours = || memory::unwritten_bytes().is_some_and(|bytes| bytes < MAX_FOREIGN_BYTES);
        let opened = || folder.try_clone_to_owned().ok();
        Unsynced {
            folder: (is_known && is_ours()).then(opened).flatten(),
            ..Unsynced::never()
        }
    }

    /// Handles a complete regular file: syncs it, or leaves that for later.
    pub fn file(&mut self, file: &std::fs::File, bytes: u64) -> io::Result<()> {
        if !self.can_wait() || bytes >= LARGE_FILE_BYTES {
            return file.sync_all();
        }
        self.is_any = true;
        self.bytes += bytes;
        match self.bytes >= MAX_UNSYNCED_BYTES {
            true => self.sync(),
            false => Ok(()),
        }
    }

    /// Handles a complete directory.
    pub fn directory(&mut self, directory: BorrowedFd<'_>) -> io::Result<()> {
        if !self.can_wait() {
            return sync_directory(directory);
        }
        self.is_any = true;
        Ok(())
    }

    /// Counts an entry, and returns whether it may be synced later.
    fn can_wait(&mut self) -> bool {
        self.entries += 1;
        self.folder.is_some() && self.entries > SYNCED_ALONE
    }

    /// Returns when all entries are durable.
    pub fn sync(&mut self) -> io::Result<()> {
        if let Some(folder) = self.folder.as_ref().filter(|_| self.is_any) {
            syncfs(folder.as_fd())?;
        }
        (self.bytes, self.is_any) = (0, false);
        Ok(())
    }
}
