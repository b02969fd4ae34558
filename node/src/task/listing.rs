//! What stood in a folder before a command ran in it, and so what that has written.
//!
//! A listing is kept in a file: should the command fail, or the PE die, what it has written
//! is found and removed before it is run again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

use super::TaskError;

/// What stood below a folder, by its path in there.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Listing(BTreeMap<PathBuf, Stood>);

/// What stood at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stood {
    /// A folder: what counts is what stands in it.
    Folder,
    /// Anything else: inode, bytes, seconds and nanoseconds of the last change of its content
    /// and of itself. Who changes a file cannot keep all of them as they were.
    File([i64; 6]),
}

impl Stood {
    fn of(entry: &DirEntry) -> io::Result<Stood> {
        let found = entry.metadata()?;
        Ok(match found.is_dir() {
            true => Stood::Folder,
            false => Stood::File([
                found.ino() as i64,
                found.size() as i64,
                found.mtime(),
                found.mtime_nsec(),
                found.ctime(),
                found.ctime_nsec(),
            ]),
        })
    }
}

impl Listing {
    /// What stands below a folder now.
    pub fn of(folder: &Path) -> Result<Listing, TaskError> {
        let mut listing = Listing::default();
        for entry in WalkDir::new(folder).min_depth(1) {
            let entry = entry.map_err(|error| walking(error, folder))?;
            let stood = Stood::of(&entry).map_err(TaskError::io("look at", entry.path()))?;
            listing.0.insert(below(&entry, folder), stood);
        }
        Ok(listing)
    }

    /// The listing that is kept in a file; `None` if there is no such file.
    pub fn kept(file: &Path) -> Result<Option<Listing>, TaskError> {
        let text = match fs::read(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(TaskError::io("read", file)(error)),
        };
        let entries = text
            .split(|&byte| byte == 0)
            .filter(|entry| !entry.is_empty());
        let listing = entries.map(parse).collect::<Option<BTreeMap<_, _>>>();
        let nonsense = || TaskError::io("read", file)(io::ErrorKind::InvalidData.into());
        Ok(Some(Listing(listing.ok_or_else(nonsense)?)))
    }

    /// Keeps it in a file, which is there whole or not at all.
    pub fn keep(&self, file: &Path) -> Result<(), TaskError> {
        let mut text = Vec::new();
        for (path, stood) in &self.0 {
            match stood {
                Stood::Folder => text.extend_from_slice(b"d"),
                Stood::File(numbers) => {
                    let numbers = numbers.map(|number| number.to_string());
                    text.extend_from_slice(numbers.join(",").as_bytes());
                }
            }
            text.push(b' ');
            text.extend_from_slice(path.as_os_str().as_bytes());
            text.push(0);
        }
        let unfinished = file.with_extension("unfinished");
        fs::write(&unfinished, text).map_err(TaskError::io("write", &unfinished))?;
        fs::rename(&unfinished, file).map_err(TaskError::io("write", file))
    }

    /// Removes what is new in the folder.
    pub fn remove_new(&self, folder: &Path) -> Result<(), TaskError> {
        self.each(folder, |path, below, is_new| match is_new {
            true => super::remove(path),
            false => {
                tracing::debug!(below = %below.display(), "was changed, and stays so");
                Ok(())
            }
        })
    }

    /// Moves what is new in the folder, or has been changed, to the same place below another
    /// one.
    pub fn move_new(&self, folder: &Path, to: &Path) -> Result<(), TaskError> {
        self.each(folder, |path, below, _| {
            let to = to.join(below);
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent).map_err(TaskError::io("create", parent))?;
            }
            fs::rename(path, &to).map_err(TaskError::io("move away", path))
        })
    }

    /// Does something with each entry that is new, whole folders at once, or was changed.
    fn each(
        &self,
        folder: &Path,
        mut act: impl FnMut(&Path, &Path, bool) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let mut walk = WalkDir::new(folder).min_depth(1).into_iter();
        while let Some(entry) = walk.next() {
            let entry = entry.map_err(|error| walking(error, folder))?;
            let now = Stood::of(&entry).map_err(TaskError::io("look at", entry.path()))?;
            let below = below(&entry, folder);
            let stood = self.0.get(&below);
            if stood == Some(&now) {
                continue;
            }
            if now == Stood::Folder {
                walk.skip_current_dir();
            }
            act(entry.path(), &below, stood.is_none())?;
        }
        Ok(())
    }
}

fn below(entry: &DirEntry, folder: &Path) -> PathBuf {
    // Everything that is found below it begins with it.
    let path = entry.path();
    path.strip_prefix(folder).unwrap_or(path).to_owned()
}

fn walking(error: walkdir::Error, folder: &Path) -> TaskError {
    let path = error.path().unwrap_or(folder).to_owned();
    let source = error.into_io_error();
    TaskError::io("look at", &path)(source.unwrap_or(io::ErrorKind::Other.into()))
}

fn parse(entry: &[u8]) -> Option<(PathBuf, Stood)> {
    let space = entry.iter().position(|&byte| byte == b' ')?;
    let (numbers, path) = (&entry[..space], &entry[space + 1..]);
    let stood = match numbers {
        b"d" => Stood::Folder,
        numbers => {
            let numbers = str::from_utf8(numbers).ok()?.split(',');
            let numbers: Vec<i64> = numbers.map(|n| n.parse().ok()).collect::<Option<_>>()?;
            Stood::File(numbers.try_into().ok()?)
        }
    };
    Some((Path::new(OsStr::from_bytes(path)).to_owned(), stood))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_or_changed_is_moved_and_nothing_else() -> Result<(), TaskError> {
        let dir = tempfile::tempdir().expect("a scratch directory");
        let (at, to) = (dir.path().join("at"), dir.path().join("to"));
        fs::create_dir_all(at.join("old/deep")).expect("it can be made");
        for name in ["same", "to be changed", "old/deep/same", "old/gone"] {
            fs::write(at.join(name), name).expect("it can be written");
        }
        let before = Listing::of(&at)?;
        let file = dir.path().join("before");
        assert_eq!(Listing::kept(&file)?, None);
        before.keep(&file)?;
        let before = Listing::kept(&file)?.expect("it is there");
        assert_eq!(before, Listing::of(&at)?);

        fs::write(at.join("to be changed"), "to be changed").expect("of the same length");
        fs::remove_file(at.join("old/gone")).expect("it is there");
        fs::write(at.join("old/deep/new\n "), "1").expect("it can be written");
        fs::create_dir_all(at.join("new/empty")).expect("it can be made");
        fs::create_dir(&to).expect("it can be made");
        before.move_new(&at, &to)?;
        let paths = |folder| Listing::of(folder).map(|l| l.0.into_keys().collect::<Vec<_>>());
        let is = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let moved = [
            "new",
            "new/empty",
            "old",
            "old/deep",
            "old/deep/new\n ",
            "to be changed",
        ];
        assert_eq!(paths(&to)?, is(&moved));
        assert_eq!(
            paths(&at)?,
            is(&["old", "old/deep", "old/deep/same", "same"])
        );
        Ok(())
    }

    #[test]
    fn what_is_new_is_removed() -> Result<(), TaskError> {
        let dir = tempfile::tempdir().expect("a scratch directory");
        fs::write(dir.path().join("same"), "").expect("it can be written");
        let before = Listing::of(dir.path())?;
        fs::create_dir_all(dir.path().join("new/deep")).expect("it can be made");
        fs::write(dir.path().join("new/file"), "").expect("it can be written");
        before.remove_new(dir.path())?;
        assert_eq!(before, Listing::of(dir.path())?);
        Ok(())
    }
}
