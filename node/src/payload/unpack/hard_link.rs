//! Further names of files of the same message.
//!
//! The file is reached from the message's root by the names of directories, which are never symlinks
//! here. So no name of a file outside of the message is created.

use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, linkat, statat};

use super::super::cursor::Cursor;
use super::super::entry::Entry;
use super::super::error::{PayloadError, Refusal};
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
        let parent = target.parent().unwrap_or(Path::new(""));
        let gone = cursor.go_to(parent);
        let look = |()| Ok(statat(cursor.here(), first, AtFlags::SYMLINK_NOFOLLOW)?);
        let found = match gone.and_then(look) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile => found,
            Err(error)
                if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Err(error);
            }
            _ => return Ok(false),
        };
        if self.existing.is_replay() {
            let made = statat(here, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let is_made = (made.st_dev, made.st_ino) == (found.st_dev, found.st_ino);
            return match is_made {
                true => Ok(true),
                false => Err(ErrorKind::InvalidData.into()),
            };
        }
        self.existing.make_way(here, name)?;
        linkat(cursor.here(), first, here, name, AtFlags::empty())?;
        Ok(true)
    }
}
