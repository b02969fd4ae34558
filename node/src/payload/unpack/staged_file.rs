//! A regular file while its content arrives.

use std::io;
use std::os::fd::BorrowedFd;

use flitcast_proto::Unkept;
use rustix::fs::{Mode, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens};
use tokio::sync::SemaphorePermit;

use super::super::archived::Archived;
use super::super::entry::{Entry, EntryKind, Mtime};
use super::super::extents::NewFile;

pub(super) struct StagedFile {
    pub(super) file: NewFile,
    pub(super) entry: Entry,
    /// End of the content that the disk has begun to write.
    pub(super) written_back: u64,
    /// End of the current part of data, and the parts behind it.
    pub(super) end: u64,
    pub(super) rest: Box<dyn Iterator<Item = (u64, u64)> + Send>,
    /// If the file is written without the page cache: it is one of the few.
    pub(super) direct: Option<SemaphorePermit<'static>>,
}

impl StagedFile {
    /// Returns a file none of whose content has arrived.
    pub(super) fn of(file: NewFile, entry: Entry) -> StagedFile {
        StagedFile {
            file,
            written_back: 0,
            end: 0,
            rest: Box::new(entry.data()),
            direct: None,
            entry,
        }
    }

    /// Advances to the next part of data if the current one is complete; returns whether there is
    /// none.
    pub(super) fn is_done(&mut self) -> bool {
        if self.file.bytes() < self.end {
            return false;
        }
        match self.rest.next() {
            Some((at, bytes)) => {
                self.file.skip_to(at);
                self.end = at + bytes;
                false
            }
            None => true,
        }
    }
}

/// The setuid and setgid bits.
const SET_ID_BITS: u32 = 0o6000;

/// Attributes of a file or directory, which are set last, since writing to an entry changes them.
pub(super) struct Attributes {
    mode: u32,
    mtime: Option<Mtime>,
    archived: Option<Box<Archived>>,
}

impl Attributes {
    pub(super) fn of(entry: &Entry) -> Attributes {
        let is_left =
            entry.kind == EntryKind::Directory && entry.is_root() && entry.mtime == Mtime::LEAVE;
        Attributes {
            mode: entry.mode,
            mtime: (!is_left).then_some(entry.mtime),
            archived: entry.archived.clone(),
        }
    }

    /// Sets the attributes, in a lent folder without special rights; returns those of an archive that are
    /// not set. The mode is last: an owner clears bits of it, an ACL changes it, and it may deny writing.
    pub(super) fn set(&self, of: BorrowedFd<'_>, is_lent: bool) -> io::Result<Unkept> {
        let archived = self.archived.as_ref();
        let mut unkept = archived.map_or(Unkept::default(), |it| it.set(of, is_lent));
        if let Some(mtime) = self.mtime {
            futimens(of, &timestamps(mtime))?;
        }
        let mut mode = self.mode;
        // Without its owner, a program would have the rights of another user.
        if mode & SET_ID_BITS != 0 && (is_lent || unkept.owners > 0) {
            mode &= !SET_ID_BITS;
            unkept.special_modes = 1;
        }
        fchmod(of, Mode::from_raw_mode(mode))?;
        Ok(unkept)
    }
}

/// Returns a time of modification as `utimensat` takes it.
pub(super) fn timestamps(mtime: Mtime) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: mtime.seconds,
            tv_nsec: mtime.nanos.into(),
        },
    }
}
