//! Locks on open files, which end with the last process that has the file open.

use std::fs::File;
use std::io;

use rustix::fs::{FlockOperation, flock};

/// Whom a lock keeps out.
#[derive(Clone, Copy, Debug)]
pub enum Lock {
    /// Everybody else.
    Exclusive,
    /// Those who want to be alone.
    Shared,
}

/// Takes a lock, and does not wait for it.
///
/// # Errors
///
/// `WouldBlock` while somebody has a lock against it; any other, where the file system has no
/// locks.
pub fn try_lock(file: &File, lock: Lock) -> io::Result<()> {
    let how = match lock {
        Lock::Exclusive => FlockOperation::NonBlockingLockExclusive,
        Lock::Shared => FlockOperation::NonBlockingLockShared,
    };
    Ok(flock(file, how)?)
}
