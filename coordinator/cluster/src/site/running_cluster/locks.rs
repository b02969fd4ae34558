//! The locks in the folder of a running cluster.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use flitcast_node::system::lock::{Lock, try_lock};

const LOCK: &str = "lock";

/// Returns whether a daemon holds its lock in the folder.
pub fn is_kept(folder: &Path) -> io::Result<bool> {
    // A shared lock conflicts only with a daemon that is starting.
    match taken(&folder.join(LOCK), Lock::Shared) {
        Ok(taken) => Ok(taken.is_none()),
        // The folder is being removed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes the lock of a daemon; returns `None` if a daemon holds it.
pub fn lock(folder: &Path) -> io::Result<Option<File>> {
    taken(&folder.join(LOCK), Lock::Exclusive)
}

/// Takes a lock; returns `None` if a conflicting lock is held.
pub fn taken(path: &Path, lock: Lock) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let file = options
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .open(path)?;
    match try_lock(&file, lock) {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
