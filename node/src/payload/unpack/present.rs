//! Files that are taken from the entry that a message replaces.
//!
//! That entry stays as it is until the complete message takes its place, so a file of it with the right
//! permissions and time gets a second name in the staging place. Other files are copied, since
//! setting their attributes would change the entry.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Stat, fstat, linkat, statat, unlinkat};
use rustix::io::Errno;

use super::super::cursor::Cursor;
use super::super::entry::{Entry, Mtime, Present};
use super::super::error::PayloadError;
use super::super::extents::NewFile;
use super::super::inode::names_of;
use super::super::present::digest_of;
use super::super::scan::open_regular;
use super::replay::Existing;
use super::staged_file::StagedFile;
use super::{Root, Unpacker, open_file};
use crate::limits::DISK_BLOCK_BYTES;
use crate::system::process::is_root;

impl Unpacker {
    /// Takes a file of a folder over from the entry that is replaced.
    pub(super) fn take_over(&mut self, entry: Entry, how: Present) -> Result<(), PayloadError> {
        if self.existing == Existing::Measured {
            return Ok(());
        }
        let (Some(name), Root::Directory(open)) = (entry.path.file_name(), &self.root) else {
            return Err(self.no_longer(&entry));
        };
        // The run that left a prefix may have taken the file over.
        if self.existing != Existing::Nothing {
            match unlinkat(open.cursor.here(), name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(self.not_made(&entry.path, error.into())),
            }
        }
        let opened = self.open_replaced(&entry, how);
        let (Ok((source, old)), Root::Directory(open)) = (opened, &self.root) else {
            return Err(self.no_longer(&entry));
        };
        let here = open.cursor.here();
        if has_attributes(&old, &source, &entry)
            && self.is_same(&source, &entry, how)?
            && let Some(replaced) = &self.replaced
            && linkat(replaced.here(), name, here, name, AtFlags::empty()).is_ok()
        {
            let linked = statat(here, name, AtFlags::SYMLINK_NOFOLLOW);
            if !linked.is_ok_and(|linked| linked.st_ino == old.st_ino) {
                return Err(self.no_longer(&entry));
            }
            let synced = self.unsynced.file(&source, entry.size());
            synced.map_err(|error| self.io("make durable", &entry.path, error))?;
            self.pulse.worked();
            return Ok(());
        }
        let file = open_file(here, Path::new(name), Existing::Nothing);
        let file = file.map_err(|error| self.not_made(&entry.path, error))?;
        self.copy(&source, file, entry, how)
    }

    /// Copies a message that is one file from the entry that is replaced.
    pub(super) fn copy_root(
        &mut self,
        mut file: NewFile,
        entry: Entry,
        how: Present,
    ) -> Result<(), PayloadError> {
        if self.existing == Existing::Measured {
            return Ok(());
        }
        let truncated = file.truncate();
        truncated.map_err(|error| self.io("write", &entry.path, error))?;
        let place = self.staging.destination();
        let source = open_regular(CWD, place, place).and_then(|source| {
            let found = fstat(&source).map_err(PayloadError::io("read", place))?;
            Ok((source, found))
        });
        match source {
            Ok((source, found)) if is_like(&found, &entry, how) => {
                self.copy(&source, file, entry, how)
            }
            _ => Err(self.no_longer(&entry)),
        }
    }

    /// Opens the file in the entry that is replaced, if it is as the source expects.
    fn open_replaced(&mut self, entry: &Entry, how: Present) -> io::Result<(File, Stat)> {
        let cursor = match &mut self.replaced {
            Some(cursor) => cursor,
            none => none.insert(Cursor::open(self.staging.destination())?),
        };
        cursor.go_to(entry.path.parent().unwrap_or(Path::new("")))?;
        let name = Path::new(entry.path.file_name().unwrap_or_default());
        let file = open_regular(cursor.here(), name, name).map_err(io::Error::other)?;
        let found = fstat(&file)?;
        match is_like(&found, entry, how) {
            true => Ok((file, found)),
            false => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Returns whether a file has the expected content, as far as that is compared.
    fn is_same(&self, file: &File, entry: &Entry, how: Present) -> Result<bool, PayloadError> {
        let Present::ByContent(content) = how else {
            return Ok(true);
        };
        let digest = digest_of(file, 0, entry.size(), &|| self.pulse.worked());
        match digest {
            Ok(digest) if digest == content => Ok(true),
            _ => Err(self.no_longer(entry)),
        }
    }

    /// Writes the content of `source` to a new file, and finishes it.
    fn copy(
        &mut self,
        source: &File,
        mut file: NewFile,
        entry: Entry,
        how: Present,
    ) -> Result<(), PayloadError> {
        let mut block = vec![0; DISK_BLOCK_BYTES];
        while file.bytes() < entry.size() {
            let left = entry.size() - file.bytes();
            let most = usize::try_from(left).map_or(block.len(), |left| left.min(block.len()));
            let read = source.read_exact_at(&mut block[..most], file.bytes());
            if read.is_err() {
                return Err(self.no_longer(&entry));
            }
            let written = file.write(&block[..most]);
            written.map_err(|error| self.io("write", &entry.path, error))?;
            self.pulse.worked();
        }
        // The content may have changed meanwhile.
        let found = fstat(source).map_err(|error| self.io("read", &entry.path, error.into()))?;
        if !is_like(&found, &entry, how) || !self.is_same(source, &entry, how)? {
            return Err(self.no_longer(&entry));
        }
        self.finish_file(StagedFile::of(file, entry))
    }

    /// Returns the error of a file that the entry which is replaced no longer has.
    fn no_longer(&self, entry: &Entry) -> PayloadError {
        let place = super::below(self.staging.destination(), &entry.path);
        PayloadError::NoLongerPresent(place)
    }
}

/// Returns whether a file has the size of an entry, and its time unless the content is compared.
fn is_like(found: &Stat, entry: &Entry, how: Present) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_size as u64 == entry.size()
        && (how != Present::ByTime || Mtime::of(found) == entry.mtime)
}

/// Returns whether a file has all attributes of an entry, and in an archive one name only: its other
/// names may be of separate files now.
fn has_attributes(found: &Stat, file: &File, entry: &Entry) -> bool {
    let is_archived = entry.archived.as_ref().is_none_or(|archived| {
        names_of(found) == 1 && archived.are_of(found, file.as_fd(), is_root())
    });
    Mtime::of(found) == entry.mtime && found.st_mode & 0o7777 == entry.mode && is_archived
}
