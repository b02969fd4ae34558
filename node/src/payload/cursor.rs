//! A place in a tree of directories, from which the tree is walked name by name.
//!
//! Linux takes no path longer than 4,095 bytes in one call, and what a message has may stand
//! below a long path of its own; so nothing here names more than one component at a time.
//! However deep the place is, one descriptor is held. Nothing is followed either: whoever
//! puts a symlink in the way of a walk, or moves a directory away under it, ends it.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags, fstat, open, openat};

/// How directories are opened, and never anything else in their place.
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A directory of the tree, held open.
#[derive(Debug)]
pub(super) struct Cursor {
    here: OwnedFd,
    /// From the tree's root; empty there.
    path: PathBuf,
    /// Device and inode of the directories above, the root first: where `..` has to lead.
    above: Vec<(u64, u64)>,
}

impl Cursor {
    /// At the root of a tree.
    pub fn open(root: &Path) -> io::Result<Self> {
        Ok(Self {
            here: open(root, DIRECTORY, Mode::empty())?,
            path: PathBuf::new(),
            above: Vec::new(),
        })
    }

    /// The directory.
    pub fn here(&self) -> BorrowedFd<'_> {
        self.here.as_fd()
    }

    /// Its path from the root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_at_root(&self) -> bool {
        self.above.is_empty()
    }

    /// Goes down into a directory that stands here.
    pub fn enter(&mut self, name: &OsStr) -> io::Result<()> {
        let below = openat(&self.here, name, DIRECTORY, Mode::empty())?;
        self.above.push(identity(self.here.as_fd())?);
        self.here = below;
        self.path.push(name);
        Ok(())
    }

    /// Goes up again, unless this is the root; what was left, for what is to be done last.
    pub fn leave(&mut self) -> io::Result<OwnedFd> {
        let above = openat(&self.here, "..", DIRECTORY, Mode::empty())?;
        if self.above.pop() != Some(identity(above.as_fd())?) {
            return Err(io::Error::other("somebody has moved it meanwhile"));
        }
        self.path.pop();
        Ok(std::mem::replace(&mut self.here, above))
    }

    /// The name of the next directory on the way down to `path`; `None` where that is here,
    /// or not below.
    pub fn next_towards<'a>(&self, path: &'a Path) -> Option<&'a OsStr> {
        match path.strip_prefix(&self.path).ok()?.components().next()? {
            Component::Normal(name) => Some(name),
            _ => None,
        }
    }

    /// What stands here.
    pub fn list(&self) -> io::Result<DirectoryNames> {
        let mut listing = DirectoryNames::default();
        for entry in Dir::read_from(&self.here)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes_with_nul();
            if !matches!(name, b".\0" | b"..\0") {
                listing.next.push(listing.names.len());
                listing.names.extend_from_slice(name);
            }
        }
        let DirectoryNames { names, next } = &mut listing;
        next.sort_unstable_by_key(|&start| Reverse(name_at(names, start)));
        Ok(listing)
    }
}

/// The names in a directory, in order. They stand in one buffer: a million short ones take
/// some 20 MB, a third of what they would take one by one.
#[derive(Debug, Default)]
pub(super) struct DirectoryNames {
    /// Each with a NUL behind it.
    names: Vec<u8>,
    /// Where those begin that are still to come, the next one last.
    next: Vec<usize>,
}

impl Iterator for DirectoryNames {
    type Item = OsString;

    fn next(&mut self) -> Option<OsString> {
        let start = self.next.pop()?;
        Some(OsStr::from_bytes(name_at(&self.names, start)).to_owned())
    }
}

fn name_at(names: &[u8], start: usize) -> &[u8] {
    let rest = &names[start..];
    let end = rest.iter().position(|&byte| byte == 0);
    &rest[..end.unwrap_or(rest.len())]
}

fn identity(directory: BorrowedFd<'_>) -> io::Result<(u64, u64)> {
    let found = fstat(directory)?;
    Ok((found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_tree_is_walked_by_names_that_are_sorted() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        for name in ["b", "a-", "a", "a/x", "a/x/y"] {
            fs::create_dir(dir.path().join(name))?;
        }
        let mut cursor = Cursor::open(dir.path())?;
        assert_eq!(cursor.list()?.collect::<Vec<_>>(), ["a", "a-", "b"]);
        let target = Path::new("a/x/y");
        while let Some(name) = cursor.next_towards(target) {
            cursor.enter(name)?;
        }
        assert_eq!(cursor.path(), target);
        assert_eq!(cursor.next_towards(Path::new("b")), None);
        for above in ["a/x", "a", ""] {
            cursor.leave()?;
            assert_eq!(cursor.path(), Path::new(above));
        }
        assert!(cursor.is_at_root());
        Ok(())
    }

    #[test]
    fn no_symlink_is_entered() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        symlink("/", dir.path().join("link"))?;
        let mut cursor = Cursor::open(dir.path())?;
        assert!(cursor.enter(OsStr::new("link")).is_err());
        assert!(Cursor::open(&dir.path().join("link")).is_err());
        Ok(())
    }

    /// Or `..` would lead out of the tree.
    #[test]
    fn a_directory_that_is_moved_away_ends_the_walk() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        fs::create_dir_all(dir.path().join("root/a"))?;
        let mut cursor = Cursor::open(&dir.path().join("root"))?;
        cursor.enter(OsStr::new("a"))?;
        fs::rename(dir.path().join("root/a"), dir.path().join("a"))?;
        let error = cursor.leave().expect_err("`..` is another directory");
        assert!(error.to_string().contains("moved"), "{error}");
        Ok(())
    }
}
