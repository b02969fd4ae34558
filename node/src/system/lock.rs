//! Locks on open files, which end with the last process that has the file open.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};

#[derive(Clone, Copy, Debug)]
pub enum Lock {
    /// Excludes all other locks.
    Exclusive,
    /// Excludes exclusive locks.
    Shared,
}

/// Takes a lock without waiting for it.
///
/// # Errors
///
/// Returns `WouldBlock` if another process has a lock that excludes it, and other errors if the file
/// system has no locks.
pub fn try_lock(file: &File, lock: Lock) -> io::Result<()> {
    let how = match lock {
        Lock::Exclusive => FlockOperation::NonBlockingLockExclusive,
        Lock::Shared => FlockOperation::NonBlockingLockShared,
    };
    Ok(flock(file, how)?)
}
