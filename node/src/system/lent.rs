//! Folders that a PE lends to the coordinators that it joins: messages are read and written below them
//! only.
//!
//! A folder is opened once, when the process starts, and reached by its descriptor from then on: it
//! stays the same folder if something is renamed or mounted above it later. A path from a coordinator
//! is walked from there by names that are not symlinks.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, open, openat};
use rustix::io::Errno;

/// The folder in which the kernel lists a process's descriptors.
const DESCRIPTORS: &str = "/proc/self/fd";

/// A folder below which files may be read and written.
#[derive(Debug)]
pub struct LentFolder {
    held: OwnedFd,
    /// The folder's path as given, and without symlinks.
    names: [PathBuf; 2],
}

impl LentFolder {
    /// Opens a folder. Fails if it is not one, or if there is no `/proc`.
    pub fn open(path: &Path) -> io::Result<LentFolder> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = open(path, flags, Mode::empty())?;
        let real = std::fs::read_link(name_of(&held))?;
        let names = [std::path::absolute(path)?, real];
        Ok(LentFolder { held, names })
    }

    /// Returns the components of a path below the folder, if it is below by its name.
    fn relative<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let mut names = self.names.iter();
        let below = names.find_map(|name| path.strip_prefix(name).ok())?;
        let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
        below.components().all(is_plain).then_some(below)
    }

    /// Walks down as far as the names exist.
    fn walk(&self, below: &Path) -> Result<(), String> {
        let mut here = None::<OwnedFd>;
        let mut walked = self.names[0].clone();
        for name in below.components() {
            walked.push(name);
            let from = here.as_ref().unwrap_or(&self.held).as_fd();
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let unseen = |why: Errno| format!("`{}`: {why}", walked.display());
            here = match openat(from, name.as_os_str(), flags, Mode::empty()) {
                // The later read or write reports it.
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
                found => Some(found.map_err(unseen)?),
            };
            let found = here.as_ref().map_or(Ok(None), |at| fstat(at).map(Some));
            let found = found.map_err(unseen)?;
            let mode = found.map_or(0, |found| found.st_mode);
            if FileType::from_raw_mode(mode) == FileType::Symlink {
                return Err(format!(
                    "`{}`: a symlink, which could lead out of the folder that this PE lends; name the path that it leads to",
                    walked.display()
                ));
            }
        }
        Ok(())
    }
}

/// Returns a path below one of the folders, as this process reaches it, or the reason why it cannot
/// be used: it is not below any of them, or leads through a symlink.
pub fn below(folders: &[LentFolder], path: &Path) -> Result<PathBuf, String> {
    let outside = || {
        let names = folders
            .iter()
            .map(|it| format!("`{}`", it.names[0].display()));
        format!(
            "`{}`: outside of the folders that this PE lends, {}; name a path below them, or start the PE with another `--files DIR`",
            path.display(),
            names.collect::<Vec<_>>().join(", ")
        )
    };
    let absolute = std::path::absolute(path).map_err(|_| outside())?;
    let mut candidates = folders.iter();
    let found = candidates.find_map(|it| Some((it, it.relative(&absolute)?)));
    let (folder, below) = found.ok_or_else(outside)?;
    folder.walk(below)?;
    let held = name_of(&folder.held);
    Ok(match below.as_os_str().is_empty() {
        // The name of a descriptor is a symlink; with the dot it is the folder.
        true => held.join("."),
        false => held.join(below),
    })
}

fn name_of(held: &OwnedFd) -> PathBuf {
    Path::new(DESCRIPTORS).join(held.as_raw_fd().to_string())
}

/// Returns a path as users name it: a lent folder is reached by the name of its descriptor.
pub fn as_named(path: &Path) -> PathBuf {
    let named = || {
        let mut rest = path.strip_prefix(DESCRIPTORS).ok()?.components();
        let descriptor = Path::new(DESCRIPTORS).join(rest.next()?);
        let folder = std::fs::read_link(descriptor).ok()?;
        Some(folder.join(rest.as_path()))
    };
    named().unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn paths_below_a_folder_are_reached_by_its_descriptor() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let lent = dir.path().join("lent");
        fs::create_dir_all(lent.join("in"))?;
        fs::write(lent.join("in/p1"), "one")?;
        symlink(&lent, dir.path().join("link"))?;
        let folders = [LentFolder::open(&dir.path().join("link"))?];
        for named in ["link/in/p1", "lent/in/p1", "lent/./in/p1"] {
            let reached = below(&folders, &dir.path().join(named)).expect(named);
            assert!(reached.starts_with(DESCRIPTORS), "{}", reached.display());
            assert_eq!(fs::read(&reached)?, b"one");
            assert_eq!(as_named(&reached), lent.join("in/p1").canonicalize()?);
        }
        let itself = below(&folders, &lent).expect("it is the folder");
        assert!(fs::symlink_metadata(&itself)?.is_dir());
        let new = below(&folders, &lent.join("new/deep")).expect("it may come");
        fs::create_dir_all(new)?;
        assert!(lent.join("new/deep").is_dir());

        // The folder stays the one that was opened, even if another gets its name.
        fs::rename(&lent, dir.path().join("moved"))?;
        fs::create_dir_all(lent.join("in"))?;
        let reached = below(&folders, &lent.join("in/p1")).expect("by the name it had");
        assert_eq!(fs::read(reached)?, b"one");
        Ok(())
    }

    #[test]
    fn what_is_outside_is_not_reached() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (lent, beside) = (dir.path().join("lent"), dir.path().join("lent-not"));
        fs::create_dir_all(lent.join("in"))?;
        fs::create_dir(&beside)?;
        symlink(&beside, lent.join("out"))?;
        let folders = [LentFolder::open(&lent)?];
        for path in [
            beside.clone(),
            dir.path().to_owned(),
            lent.join("in/../../lent-not"),
            lent.join(".."),
            PathBuf::from("/"),
            PathBuf::from("relative"),
            PathBuf::new(),
        ] {
            let refused = below(&folders, &path).expect_err("it is outside");
            let why = format!("`{}`: outside of the folders", path.display());
            assert!(refused.starts_with(&why), "{refused}");
        }
        let why = format!("`{}`: a symlink", lent.join("out").display());
        for path in ["out", "out/p1", "out/new/p1"] {
            let refused = below(&folders, &lent.join(path)).expect_err("it could lead out");
            assert!(refused.starts_with(&why), "{refused}");
        }
        assert!(LentFolder::open(&lent.join("none")).is_err());
        Ok(())
    }
}
