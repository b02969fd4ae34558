//! A position in a tree of directories, which is walked one name at a time.
//!
//! Linux takes no path longer than 4,095 bytes in one call, and a long path of a message may be
//! below another long path. So each call here takes one component only, and one descriptor is open,
//! however deep the position is. Symlinks are not followed: a walk fails if another process
//! replaces a directory by a symlink, or moves the current directory.

use std::cmp::Reverse;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Dir, Mode, OFlags, fstat, open, openat};

/// Flags that open a directory, and nothing else.
const DIRECTORY: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// A directory of the tree, held open.
#[derive(Debug)]
pub(super) struct Cursor {
    here: OwnedFd,
    /// Path from the tree's root; empty at the root.
    path: PathBuf,
    /// Device and inode of the directories above, the root first: `..` must be the last of them.
    above: Vec<(u64, u64)>,
}

impl Cursor {
    /// Opens the root of a tree.
    pub fn open(root: &Path) -> io::Result<Self> {
        Ok(Self {
            here: open(root, DIRECTORY, Mode::empty())?,
            path: PathBuf::new(),
            above: Vec::new(),
        })
    }

    pub fn here(&self) -> BorrowedFd<'_> {
        self.here.as_fd()
    }

    /// Returns the path of the current directory from the tree's root.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_at_root(&self) -> bool {
        self.above.is_empty()
    }

    pub fn enter(&mut self, name: &OsStr) -> io::Result<()> {
        let below = openat(&self.here, name, DIRECTORY, Mode::empty())?;
        self.above.push(identity(self.here.as_fd())?);
        self.here = below;
        self.path.push(name);
        Ok(())
    }

    /// Goes to the directory above, and returns the one left. Fails at the root, and if the
    /// directory was moved meanwhile.
    pub fn leave(&mut self) -> io::Result<OwnedFd> {
        let above = openat(&self.here, "..", DIRECTORY, Mode::empty())?;
        if self.above.pop() != Some(identity(above.as_fd())?) {
            return Err(io::Error::other("somebody has moved it meanwhile"));
        }
        self.path.pop();
        Ok(std::mem::replace(&mut self.here, above))
    }

    /// Goes to the directory with this path from the tree's root.
    pub fn go_to(&mut self, path: &Path) -> io::Result<()> {
        while !path.starts_with(&self.path) {
            self.leave()?;
        }
        while let Some(name) = self.next_towards(path) {
            self.enter(name)?;
        }
        Ok(())
    }

    /// Returns the name of the next directory on the way down to `path`; `None` if that is the
    /// current directory, or is not below it.
    pub fn next_towards<'a>(&self, path: &'a Path) -> Option<&'a OsStr> {
        match path.strip_prefix(&self.path).ok()?.components().next()? {
            Component::Normal(name) => Some(name),
            _ => None,
        }
    }

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

/// The names in a directory, in ascending order, in one buffer: a million short ones take some
/// 20 MB, a third of what separate strings would take.
#[derive(Debug, Default)]
pub(super) struct DirectoryNames {
    /// The names, each with a NUL behind it.
    names: Vec<u8>,
    /// Offsets of the remaining names, the next one last.
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
        cursor.go_to(target)?;
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

    /// Without the check, `..` would lead out of the tree.
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
