//! The attributes of found entries: those that an archive keeps, and those that another message lacks.

use std::os::fd::AsFd as _;
use std::sync::LazyLock;

use flitcast_proto::Unkept;

use super::super::archived::Archived;
use super::super::entry::{Entry, EntryKind};
use super::super::error::PayloadError;
use super::super::inode::names_of;
use super::{FoundEntry, Walk, WalkState};
use crate::system::process::{group, user};

impl Walk {
    /// Adds the attributes of an archive to an entry; a further name of a file becomes a hard link.
    pub(super) fn archived(&mut self, mut found: FoundEntry) -> Result<FoundEntry, PayloadError> {
        let Some(stat) = found.stat else {
            return Ok(found);
        };
        let is_file = found.entry.is_file();
        let first = match &mut self.archive {
            Some(links) if is_file => links.first_of(&stat, &found.entry.path),
            _ => None,
        };
        if let Some(first) = first {
            found.entry = Entry::hard_link(found.entry.path, first);
            return Ok(found);
        }
        if is_file {
            found.file = Some(self.open_file(&found)?);
        }
        let below = match (&self.state, &found.entry.kind) {
            (WalkState::Below(cursor, _) | WalkState::Dealt(cursor, ..), EntryKind::Directory) => {
                Some(cursor.here())
            }
            _ => None,
        };
        let file = found.file.as_ref().map(|file| file.as_fd()).or(below);
        let archived = Archived::of(&stat, file);
        let archived = archived.map_err(PayloadError::io("read", &found.source))?;
        let checked = archived.check();
        checked.map_err(|why| PayloadError::Refused(found.source.clone(), why))?;
        found.entry.archived = Some(Box::new(archived));
        found.entry.mode = stat.st_mode & 0o7777;
        Ok(found)
    }

    /// Counts what is not sent of the attributes of an entry, as far as `stat` has them.
    pub(super) fn count_unkept(&mut self, found: &FoundEntry) {
        static OWNER: LazyLock<(u32, u32)> = LazyLock::new(|| (user(), group()));
        let Some(stat) = &found.stat else { return };
        let is_link = matches!(found.entry.kind, EntryKind::Symlink { .. });
        self.unkept += Unkept {
            hard_links: u64::from(found.entry.is_file() && names_of(stat) > 1),
            special_modes: u64::from(!is_link && stat.st_mode & 0o7000 != 0),
            owners: u64::from((stat.st_uid, stat.st_gid) != *OWNER),
            extended: 0,
        };
    }
}
