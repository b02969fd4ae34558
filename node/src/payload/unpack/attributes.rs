//! Attributes of entries, which are set last, since writing to an entry changes them.

use std::io;
use std::os::fd::BorrowedFd;

use flitcast_proto::Unkept;
use rustix::fs::{Mode, Timespec, Timestamps, UTIME_OMIT, fchmod, futimens};

use super::super::archived::Archived;
use super::super::entry::{Entry, EntryKind, Mtime};

/// The setuid and setgid bits.
const SET_ID_BITS: u32 = 0o6000;

/// Attributes of a file or directory.
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
