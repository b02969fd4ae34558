//! The time at which the entries of a folder become durable: each when it is complete, or all small
//! ones at the end.
//!
//! A sync of one file waits for the journal of the file system, whatever the file's length, so 10,000
//! syncs take seconds. One sync of the whole file system takes as long as a few of them, unless other
//! programs have written much that the disk does not have yet. So the first entries are held open, and
//! synced one by one if no others follow.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use flitcast_proto::Durability;
use flitcast_proto::cost::{
    DIRECT_BUFFER_BYTES, LARGE_FILE_BYTES, SYNCED_ALONE, is_written_directly,
};
use rustix::fs::{Advice, fadvise, fstatfs, fsync, syncfs};
use rustix::io::Errno;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::extents::NewFile;
use crate::limits::{MOST_DIRECT_FILES, MOST_HELD_ENTRIES, WRITE_BACK_BYTES};
use crate::system::process;

/// Bytes of small files that are synced together. A power cut or a full disk costs no more, and the
/// sync at the end of a message waits for no more.
const MAX_UNSYNCED_BYTES: u64 = 64 << 20;
/// Bytes of other programs that the disk does not have yet: with more, files are synced one by one.
const MAX_FOREIGN_BYTES: f64 = 256e6;
/// Numbers of file systems in `statfs`: of ext2 to ext4, and of others by name.
pub(super) const EXT: u64 = 0xEF53;
pub(super) const XFS: u64 = 0x5846_5342;
pub(super) const TMPFS: u64 = 0x0102_1994;
const BTRFS: u64 = 0x9123_683E;
const F2FS: u64 = 0xF2F5_2010;
const OVERLAYFS: u64 = 0x794C_7630;

/// File systems of which a sync writes everything and reports errors.
const KNOWN_FILE_SYSTEMS: [u64; 6] = [EXT, XFS, BTRFS, F2FS, TMPFS, OVERLAYFS];

/// File systems on which long files are written without the page cache. Others accept that and write as before,
/// or wait for a server or a checksum at each write.
const DIRECT_FILE_SYSTEMS: [u64; 2] = [EXT, XFS];

/// The files that are written without the page cache.
static DIRECT: Semaphore = Semaphore::const_new(MOST_DIRECT_FILES);

/// The entries that all messages of this process may hold open until their end.
static HELD: Semaphore = Semaphore::const_new(MOST_HELD_ENTRIES);

/// The unsynced small entries of a message.
#[derive(Debug)]
pub(super) struct Unsynced {
    durability: Durability,
    /// The folder of the message, opened before anything was written to it: its sync reports errors of
    /// writing since then. `None` if small entries are not synced at the end.
    folder: Option<OwnedFd>,
    /// The first entries, as long as they are all.
    first: Vec<(OwnedFd, SemaphorePermit<'static>)>,
    /// Number of entries so far.
    entries: u64,
    /// Number of bytes that were not synced so far.
    bytes: u64,
}

impl Unsynced {
    /// Creates the state of a new message. Each entry is synced when it is complete, or never, unless
    /// [`Unsynced::begin_folder`] postpones that.
    pub fn new(durability: Durability) -> Unsynced {
        Unsynced {
            durability,
            folder: None,
            first: Vec::new(),
            entries: 0,
            bytes: 0,
        }
    }

    /// Lets the small entries of a new folder be synced at the end, if they need not be durable before, and
    /// if that is quicker where the folder is.
    pub fn begin_folder(&mut self, folder: BorrowedFd<'_>) {
        let is_known = || {
            fstatfs(folder).is_ok_and(|about| KNOWN_FILE_SYSTEMS.contains(&(about.f_type as u64)))
        };
        let is_ours = || process::unwritten_bytes().is_some_and(|bytes| bytes < MAX_FOREIGN_BYTES);
        if self.durability == Durability::Message && is_known() && is_ours() {
            self.folder = folder.try_clone_to_owned().ok();
        }
    }

    /// Has a new file that will have `bytes` bytes of content written without the page cache, if that is quicker
    /// for its length and where it is, and few others are. Then the file holds the returned permit.
    pub fn begin_file(&self, file: &mut NewFile, bytes: u64) -> Option<SemaphorePermit<'static>> {
        if !is_written_directly(bytes, self.durability) {
            return None;
        }
        let file_system = fstatfs(file.file()).ok()?.f_type as u64;
        let permit = DIRECT.try_acquire().ok()?;
        let is_quicker = DIRECT_FILE_SYSTEMS.contains(&file_system);
        is_quicker.then(|| {
            file.write_directly(DIRECT_BUFFER_BYTES);
            permit
        })
    }

    /// Handles further content of a file up to the byte `end`, of which the disk has begun to write the bytes
    /// before `begun`.
    pub fn content(&self, file: &File, begun: &mut u64, end: u64) {
        let more = end - *begun;
        if more >= WRITE_BACK_BYTES && self.durability != Durability::Never {
            // This makes the kernel write the new pages now. It drops only pages that are written already. If
            // it fails, the sync at the end takes longer.
            let _ = fadvise(file, *begun, NonZeroU64::new(more), Advice::DontNeed);
            *begun = end;
        }
    }

    /// Handles a complete regular file: syncs it, or leaves that for later.
    pub fn file(&mut self, file: &File, bytes: u64) -> io::Result<()> {
        match bytes < LARGE_FILE_BYTES || self.durability == Durability::Never {
            true => self.entry(file.as_fd(), bytes),
            false => file.sync_all(),
        }
    }

    /// Handles a complete directory.
    pub fn directory(&mut self, directory: BorrowedFd<'_>) -> io::Result<()> {
        self.entry(directory, 0)
    }

    fn entry(&mut self, entry: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
        if self.folder.is_none() {
            return match self.durability {
                Durability::Never => Ok(()),
                _ => sync(entry),
            };
        }
        self.entries += 1;
        if self.entries <= SYNCED_ALONE {
            let held = HELD.try_acquire().ok().zip(entry.try_clone_to_owned().ok());
            return match held {
                Some((permit, entry)) => {
                    self.first.push((entry, permit));
                    Ok(())
                }
                None => sync(entry),
            };
        }
        self.first.clear();
        self.bytes += bytes;
        match self.bytes >= MAX_UNSYNCED_BYTES {
            true => self.sync(),
            false => Ok(()),
        }
    }

    /// Returns when all entries are durable.
    pub fn sync(&mut self) -> io::Result<()> {
        for (entry, _permit) in self.first.drain(..) {
            sync(entry.as_fd())?;
        }
        if let Some(folder) = self.folder.as_ref().filter(|_| self.entries > SYNCED_ALONE) {
            syncfs(folder)?;
        }
        self.bytes = 0;
        Ok(())
    }
}

/// Makes a file, or the names in a directory, durable.
pub(super) fn sync(entry: BorrowedFd<'_>) -> io::Result<()> {
    match fsync(entry) {
        // The error of file systems that cannot sync a directory.
        Err(Errno::INVAL) => Ok(()),
        synced => Ok(synced?),
    }
}

#[cfg(test)]
mod tests {
    use flitcast_proto::cost::DIRECT_FILE_BYTES;

    use super::*;

    /// The memory of a PE does not grow with the number of long messages that arrive at the same time.
    #[test]
    fn few_files_are_written_without_the_page_cache_at_the_same_time() -> io::Result<()> {
        let unsynced = Unsynced::new(Durability::Message);
        let mut begun = Vec::new();
        for _ in 0..=MOST_DIRECT_FILES {
            let mut file = NewFile::new(tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR"))?, 0);
            begun.push(unsynced.begin_file(&mut file, DIRECT_FILE_BYTES));
        }
        // On other file systems than the known ones, none is.
        assert!(begun.iter().flatten().count() <= MOST_DIRECT_FILES);
        Ok(())
    }
}
