//! Inodes, which distinguish a file from another one with the same path, length and time, and from
//! itself before it was written to.

use rustix::fs::Stat;

use super::entry::Mtime;

/// Number of an inode, and the time of its last change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Inode {
    pub number: u64,
    pub changed: Mtime,
}

impl Inode {
    pub fn of(found: &Stat) -> Inode {
        Inode {
            number: found.st_ino,
            changed: Mtime {
                seconds: found.st_ctime,
                // The kernel keeps it below 10^9.
                nanos: found.st_ctime_nsec as u32,
            },
        }
    }

    /// Returns whether an open file still has this inode, unchanged. Removing its last name changes
    /// the inode, but not the content.
    pub fn is_still(self, found: &Stat) -> bool {
        let is = Inode::of(found);
        is == self || (is.number == self.number && found.st_nlink == 0)
    }
}
