//! Further names of files of the same message.
//!
//! The file is reached from the message's root by the names of directories, which are never symlinks
//! here. So no name of a file outside of the message is created.

use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Stat, linkat, statat};

use super::super::cursor::Cursor;
use super::super::entry::Entry;
use super::super::error::PayloadError;
use super::super::refusal::Refusal;
use super::{Root, Unpacker};

impl Unpacker {
    /// Creates a hard link in the current directory, or checks that it exists if a prefix is replayed.
    pub(super) fn link(&mut self, entry: &Entry, target: &Path) -> Result<(), PayloadError> {
        let linked = self.link_to(entry, target);
        match linked {
            Ok(true) => {}
            Ok(false) => {
                let path = entry.path.clone();
                return Err(PayloadError::Refused(path, Refusal::HardLinkTarget));
            }
            Err(error) => return Err(self.not_made(&entry.path, error)),
        }
        self.pulse.worked();
        Ok(())
    }

    /// Returns whether `target` is a regular file of the message, and now has the name of the entry.
    fn link_to(&mut self, entry: &Entry, target: &Path) -> io::Result<bool> {
        let (Root::Directory(open), Some(name), Some(first)) =
            (&self.root, entry.path.file_name(), target.file_name())
        else {
            return Ok(false);
        };
        let here = open.cursor.here();
        let cursor = match &mut self.linked {
            Some(cursor) => cursor,
            none => none.insert(Cursor::open(self.staging.path())?),
        };
        if !enter_parent(cursor, target)? {
            return Ok(false);
        }
        let (there, found) = (cursor.here(), stat(cursor, Path::new(first))?);
        let Some(found) = found.filter(is_file) else {
            return Ok(false);
        };
        if self.existing.is_replay() {
            let made = statat(here, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let is_made = (made.st_dev, made.st_ino) == (found.st_dev, found.st_ino);
            return match is_made {
                true => Ok(true),
                false => Err(io::ErrorKind::InvalidData.into()),
            };
        }
        self.existing.make_way(here, name)?;
        linkat(there, first, here, name, AtFlags::empty())?;
        Ok(true)
    }
}

/// Goes to the directory that a path is in; returns `false` if there is none.
fn enter_parent(cursor: &mut Cursor, path: &Path) -> io::Result<bool> {
    let parent = path.parent().unwrap_or(Path::new(""));
    while !parent.starts_with(cursor.path()) {
        cursor.leave()?;
    }
    while let Some(name) = cursor.next_towards(parent) {
        let found = stat(cursor, Path::new(name))?;
        if !found.is_some_and(|found| kind(&found) == FileType::Directory) {
            return Ok(false);
        }
        cursor.enter(name)?;
    }
    Ok(true)
}

/// Examines an entry of the cursor's directory, unless there is none.
fn stat(cursor: &Cursor, name: &Path) -> io::Result<Option<Stat>> {
    match statat(cursor.here(), name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(rustix::io::Errno::NOENT) => Ok(None),
        found => Ok(Some(found?)),
    }
}

fn kind(found: &Stat) -> FileType {
    FileType::from_raw_mode(found.st_mode)
}

fn is_file(found: &Stat) -> bool {
    kind(found) == FileType::RegularFile
}
