//! Inodes, which distinguish a file from another one with the same path, length and time, and from
//! itself before it was written to.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

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

/// First names of the files of a message that have more names than were found so far. The first name of a
/// file has its content, each further one the path of the first.
#[derive(Debug, Default)]
pub(super) struct HardLinks {
    /// Path and number of the other names, by device and inode.
    first: HashMap<(u64, u64), (PathBuf, u64)>,
}

impl HardLinks {
    /// Returns the first path of the file with the name `path`; `None` if this is the first one.
    pub fn first_of(&mut self, found: &Stat, path: &Path) -> Option<PathBuf> {
        let (links, inode) = (names_of(found), inode_of(found));
        if links < 2 {
            return None;
        }
        let Some((first, others)) = self.first.get_mut(&inode) else {
            self.first.insert(inode, (path.to_owned(), links - 1));
            return None;
        };
        *others -= 1;
        let found = first.clone();
        if *others == 0 {
            self.first.remove(&inode);
        }
        Some(found)
    }
}

/// Returns the number of names of a file.
// The types of these fields differ between processors.
#[allow(clippy::unnecessary_cast)]
pub(super) fn names_of(found: &Stat) -> u64 {
    found.st_nlink as u64
}

#[allow(clippy::unnecessary_cast)]
fn inode_of(found: &Stat) -> (u64, u64) {
    (found.st_dev as u64, found.st_ino as u64)
}
