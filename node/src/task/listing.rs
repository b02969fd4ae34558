//! The content of a folder before a command ran in it, from which follows what the command has written.
//!
//! A listing is kept in a file: if the command fails or the PE dies, the files that it has written are
//! found and removed before it is run again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::TaskError;

/// The entries below a folder, by their path in it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Listing(BTreeMap<PathBuf, EntrySnapshot>);

/// An entry before the command ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntrySnapshot {
    /// A folder: only its entries count.
    Folder,
    /// Any other entry: inode, length, seconds and nanoseconds of the last change of its content and of
    /// its metadata. A program that changes a file cannot restore all of them.
    File([i64; 6]),
}

impl EntrySnapshot {
    fn of(found: &fs::Metadata) -> EntrySnapshot {
        match found.is_dir() {
            true => EntrySnapshot::Folder,
            false => EntrySnapshot::File([
                found.ino() as i64,
                found.size() as i64,
                found.mtime(),
                found.mtime_nsec(),
                found.ctime(),
                found.ctime_nsec(),
            ]),
        }
    }
}

impl Listing {
    /// Lists the entries below a folder.
    pub fn of(folder: &Path) -> Result<Listing, TaskError> {
        let mut listing = Listing::default();
        for entry in Walk::below(folder) {
            let (path, found) = entry?;
            let snapshot = EntrySnapshot::of(&found);
            listing.0.insert(below(&path, folder), snapshot);
        }
        Ok(listing)
    }

    /// Reads the listing in a file; returns `None` if there is no such file.
    pub fn kept(file: &Path) -> Result<Option<Listing>, TaskError> {
        let text = match fs::read(file) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(TaskError::io("read", file)(error)),
        };
        let entries = text.split(|&byte| byte == 0);
        let entries = entries.filter(|entry| !entry.is_empty());
        let listing = entries.map(parse).collect::<Option<BTreeMap<_, _>>>();
        let nonsense = || TaskError::io("read", file)(io::ErrorKind::InvalidData.into());
        Ok(Some(Listing(listing.ok_or_else(nonsense)?)))
    }

    /// Writes the listing to a file, whole or not at all.
    pub fn keep(&self, file: &Path) -> Result<(), TaskError> {
        let mut text = Vec::new();
        for (path, stood) in &self.0 {
            match stood {
                EntrySnapshot::Folder => text.extend_from_slice(b"d"),
                EntrySnapshot::File(numbers) => {
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

    /// Removes the new entries of the folder.
    pub fn remove_new(&self, folder: &Path) -> Result<(), TaskError> {
        self.each(folder, |path, below, is_new| match is_new {
            true => super::remove(path),
            false => {
                tracing::debug!(below = %below.display(), "was changed, and stays so");
                Ok(())
            }
        })
    }

    /// Moves new or changed entries of the folder to the same path below another one. Calls `refuse`
    /// for an entry that cannot be moved.
    pub fn move_new(
        &self,
        folder: &Path,
        to: &Path,
        mut refuse: impl FnMut(&Path, io::Error),
    ) -> Result<(), TaskError> {
        self.each(folder, |path, below, _| {
            let to = to.join(below);
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent).map_err(TaskError::io("create", parent))?;
            }
            if let Err(error) = take(path, &to) {
                refuse(below, error);
            }
            Ok(())
        })
    }

    /// Calls a function for each entry that is new, for whole folders at once, or was changed.
    fn each(
        &self,
        folder: &Path,
        mut act: impl FnMut(&Path, &Path, bool) -> Result<(), TaskError>,
    ) -> Result<(), TaskError> {
        let mut walk = Walk::below(folder);
        while let Some(entry) = walk.next() {
            let (path, found) = entry?;
            let (now, below) = (EntrySnapshot::of(&found), below(&path, folder));
            let stood = self.0.get(&below);
            if stood == Some(&now) {
                continue;
            }
            if now == EntrySnapshot::Folder {
                walk.skip_folder();
            }
            act(&path, &below, stood.is_none())?;
        }
        Ok(())
    }
}

/// Renames an entry in spite of its permissions and those of its folder, and restores them.
fn take(path: &Path, to: &Path) -> io::Result<()> {
    let moved = fs::rename(path, to);
    if !matches!(&moved, Err(error) if error.kind() == io::ErrorKind::PermissionDenied) {
        return moved;
    }
    // A folder that is moved is written to, as is the one that it leaves.
    let is_folder = fs::symlink_metadata(path)?.is_dir();
    let above = path.parent().map(Writable::make).transpose()?;
    let folder = is_folder.then(|| Writable::make(path)).transpose()?;
    let moved = fs::rename(path, to);
    let is_now_at = if moved.is_ok() { to } else { path };
    let restored = folder.map_or(Ok(()), |folder| folder.restore(is_now_at));
    if let (Some(above), Some(parent)) = (above, path.parent()) {
        above.restore(parent)?;
    }
    moved.and(restored)
}

/// A folder that was made writable, with its permissions before.
struct Writable(fs::Permissions);

impl Writable {
    fn make(folder: &Path) -> io::Result<Writable> {
        let before = fs::metadata(folder)?.permissions();
        fs::set_permissions(folder, fs::Permissions::from_mode(before.mode() | 0o700))?;
        Ok(Writable(before))
    }

    fn restore(self, folder: &Path) -> io::Result<()> {
        fs::set_permissions(folder, self.0)
    }
}

fn below(path: &Path, folder: &Path) -> PathBuf {
    // Every path found below it begins with it.
    path.strip_prefix(folder).unwrap_or(path).to_owned()
}

fn parse(entry: &[u8]) -> Option<(PathBuf, EntrySnapshot)> {
    let space = entry.iter().position(|&byte| byte == b' ')?;
    let (numbers, path) = (&entry[..space], &entry[space + 1..]);
    let stood = match numbers {
        b"d" => EntrySnapshot::Folder,
        numbers => {
            let numbers = str::from_utf8(numbers).ok()?.split(',');
            let numbers: Vec<i64> = numbers.map(|n| n.parse().ok()).collect::<Option<_>>()?;
            EntrySnapshot::File(numbers.try_into().ok()?)
        }
    };
    Some((Path::new(OsStr::from_bytes(path)).to_owned(), stood))
}

/// The entries below a folder, each folder before its own entries.
pub(super) struct Walk {
    /// The last returned entry, if it is a folder.
    folder: Option<PathBuf>,
    ahead: Vec<PathBuf>,
}

impl Walk {
    pub fn below(folder: &Path) -> Walk {
        Walk {
            folder: Some(folder.to_owned()),
            ahead: Vec::new(),
        }
    }

    /// Leaves out the entries below the last returned folder.
    pub fn skip_folder(&mut self) {
        self.folder = None;
    }

    fn step(&mut self) -> Result<Option<(PathBuf, Metadata)>, TaskError> {
        if let Some(folder) = self.folder.take() {
            let entries = fs::read_dir(&folder).and_then(|entries| {
                let paths = entries.map(|entry| Ok(entry?.path()));
                paths.collect::<io::Result<Vec<_>>>()
            });
            self.ahead
                .extend(entries.map_err(TaskError::io("look at", &folder))?);
        }
        let Some(path) = self.ahead.pop() else {
            return Ok(None);
        };
        // A link is not followed.
        let found = fs::symlink_metadata(&path).map_err(TaskError::io("look at", &path))?;
        self.folder = found.is_dir().then(|| path.clone());
        Ok(Some((path, found)))
    }
}

impl Iterator for Walk {
    type Item = Result<(PathBuf, Metadata), TaskError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_or_changed_is_moved_or_removed_and_nothing_else() -> Result<(), TaskError> {
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
        before.move_new(&at, &to, |path, error| {
            panic!("{}: {error}", path.display())
        })?;
        let paths = |folder| Listing::of(folder).map(|l| l.0.into_keys().collect::<Vec<_>>());
        let is = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let moved = is(&[
            "new",
            "new/empty",
            "old",
            "old/deep",
            "old/deep/new\n ",
            "to be changed",
        ]);
        assert_eq!(paths(&to)?, moved);
        assert_eq!(
            paths(&at)?,
            is(&["old", "old/deep", "old/deep/same", "same"])
        );

        let before = Listing::of(&at)?;
        fs::create_dir_all(at.join("new/deep")).expect("it can be made");
        fs::write(at.join("new/file"), "").expect("it can be written");
        before.remove_new(&at)?;
        assert_eq!(before, Listing::of(&at)?);
        Ok(())
    }
}
