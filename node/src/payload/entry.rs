//! Entries of a message: the checked form and the form on the wire.
//!
//! No other module of the payload uses the generated `FileEntry`. Sent and received entries pass
//! the same checks, so a sender finds before the round what a receiver would refuse. No file is
//! accessed here.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use flitcast_proto::wire::flit::Digest;
use flitcast_proto::wire::pb;
use prost::Message;
use rustix::fs::Stat;

use super::archived::{ARCHIVED_BYTES_MAX, Archived};
use super::error::{PATH_BYTES_MAX, PayloadError, Refusal};
use super::extents::Extents;

/// The files that a message is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A regular file, or a directory and everything below it.
    Entry(PathBuf),
    /// Some of the files below a directory, and the directories on the way to them.
    Dealt {
        base: PathBuf,
        /// Regular files, symlinks and empty directories, relative to `base`, sorted, none twice.
        files: Arc<[PathBuf]>,
        /// Whether the directory, with its mode and time, is the root of the message; else that is a new
        /// one.
        with_root: bool,
    },
    /// A part of a regular file.
    Part {
        path: PathBuf,
        /// The position of the first byte.
        at: u64,
        bytes: u64,
    },
}

impl Content {
    /// Returns the path of the entry, or of the directory that the files are below.
    pub fn path(&self) -> &Path {
        match self {
            Self::Entry(path) | Self::Dealt { base: path, .. } | Self::Part { path, .. } => path,
        }
    }
}

/// Maximum length of an encoded `FileEntry` in bytes: a full path, and either a full target or the
/// most extents, of up to ten bytes each.
pub(super) const ENTRY_BYTES_MAX: usize = 16 * 1024;

/// Maximum length of an encoded `FileEntry` in an archive, in bytes.
pub(super) const ARCHIVE_ENTRY_BYTES_MAX: usize = ENTRY_BYTES_MAX + ARCHIVED_BYTES_MAX;

/// An entry of a message: a regular file, a directory, a symlink or, in an archive, a hard link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Path relative to the message's root; empty for the root itself.
    pub(super) path: PathBuf,
    pub(super) kind: EntryKind,
    /// Permission bits; setuid, setgid and sticky only in an archive.
    pub(super) mode: u32,
    pub(super) mtime: Mtime,
    /// For a regular file that is not sent: the comparison by which the destination has it.
    pub(super) present: Option<Present>,
    /// In an archive: the other attributes, except for a hard link and a root without a source.
    pub(super) archived: Option<Box<Archived>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File {
        size: u64,
        extents: Extents,
    },
    Directory,
    Symlink {
        target: PathBuf,
    },
    /// A further name of a regular file; `target` is the path of its first entry.
    HardLink {
        target: PathBuf,
    },
}

/// The comparison by which the destination has a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Present {
    /// The size and the modification time are equal.
    ByTime,
    /// The content has this digest.
    ByContent(Digest),
}

/// Time of the last modification, since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mtime {
    pub seconds: i64,
    pub nanos: u32,
}

impl Entry {
    /// Returns the root of a dealt message, which does not exist at its source.
    pub(super) fn dealt_root() -> Self {
        Self {
            path: PathBuf::new(),
            kind: EntryKind::Directory,
            mode: 0o755,
            mtime: Mtime::LEAVE,
            present: None,
            archived: None,
        }
    }

    /// Returns a hard link to the file that another entry of the message has.
    pub(super) fn hard_link(path: PathBuf, target: PathBuf) -> Self {
        Self {
            path,
            kind: EntryKind::HardLink { target },
            mode: 0,
            ..Self::dealt_root()
        }
    }

    /// Returns whether the entry can only be a part of an archive.
    pub(super) fn is_archived(&self) -> bool {
        self.archived.is_some() || matches!(self.kind, EntryKind::HardLink { .. })
    }

    pub(super) fn is_root(&self) -> bool {
        self.path.as_os_str().is_empty()
    }

    /// Returns the length and the extents of a regular file.
    fn file(&self) -> Option<(u64, &Extents)> {
        match &self.kind {
            EntryKind::File { size, extents } => Some((*size, extents)),
            EntryKind::Directory | EntryKind::Symlink { .. } | EntryKind::HardLink { .. } => None,
        }
    }

    /// Returns the length of a regular file, its holes included; 0 for anything else.
    pub(super) fn size(&self) -> u64 {
        self.file().map_or(0, |(size, _)| size)
    }

    pub(super) fn is_file(&self) -> bool {
        self.file().is_some()
    }

    /// Returns the begin and the length of each part of a regular file that is data.
    pub(super) fn data(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let sent = self.file().filter(|_| self.present.is_none());
        let data = sent.map(|(size, extents)| extents.data(size));
        data.into_iter().flatten()
    }

    /// Returns the bytes that follow the entry: the data of a regular file.
    pub(super) fn content_bytes(&self) -> u64 {
        let sent = self.file().filter(|_| self.present.is_none());
        sent.map_or(0, |(size, extents)| extents.data_bytes(size))
    }

    /// Returns the entry of the file as it is listed, however its content is sent.
    pub(super) fn listed(&self) -> Entry {
        let mut entry = self.clone();
        entry.present = None;
        if let EntryKind::File { extents, .. } = &mut entry.kind {
            *extents = Extents::default();
        }
        entry
    }

    /// Checks the path and the link target of an entry, at the sender as at the receiver.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        check_path(self.path.as_os_str().as_bytes())?;
        if let Some(archived) = &self.archived {
            archived.check()?;
        }
        let target = match &self.kind {
            EntryKind::Symlink { target } => target,
            EntryKind::HardLink { target } if self.is_root() || target.as_os_str().is_empty() => {
                return Err(Refusal::HardLinkTarget);
            }
            EntryKind::HardLink { target } => return check_path(target.as_os_str().as_bytes()),
            EntryKind::File { .. } | EntryKind::Directory => return Ok(()),
        };
        if self.is_root() {
            return Err(Refusal::RootSymlink);
        }
        if target.as_os_str().len() > PATH_BYTES_MAX {
            return Err(Refusal::PathTooLong);
        }
        if !stays_inside(&self.path, target) {
            return Err(Refusal::SymlinkLeaves(target.clone()));
        }
        Ok(())
    }

    /// Encodes the entry with its length prefix, as sent before the content.
    pub fn encode(&self) -> Vec<u8> {
        self.to_wire().encode_length_delimited_to_vec()
    }

    /// Returns the length of the entry and its content in the message; `None` if it overflows.
    pub(super) fn message_bytes(&self) -> Option<u64> {
        let entry = self.to_wire().encoded_len();
        let prefix = prost::length_delimiter_len(entry);
        self.content_bytes().checked_add((prefix + entry) as u64)
    }

    /// Decodes the result of [`Self::encode`] without its length prefix, and checks the entry.
    pub fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        let malformed =
            |path: &Path, what| PayloadError::Refused(path.to_owned(), Refusal::Malformed(what));
        let mut wire = pb::FileEntry::decode(bytes)
            .map_err(|_| malformed(Path::new("an entry"), "not a FileEntry"))?;
        let path = to_path(&wire.path);
        let kind = match wire.kind() {
            pb::file_entry::Kind::File => EntryKind::File {
                size: wire.size,
                extents: Extents::parse(std::mem::take(&mut wire.extents), wire.size)
                    .ok_or_else(|| malformed(&path, "extents that are not those of its size"))?,
            },
            pb::file_entry::Kind::Directory => EntryKind::Directory,
            pb::file_entry::Kind::Symlink => EntryKind::Symlink {
                target: to_path(&wire.target),
            },
            pb::file_entry::Kind::HardLink => EntryKind::HardLink {
                target: to_path(&wire.target),
            },
            pb::file_entry::Kind::Unspecified => return Err(malformed(&path, "unknown kind")),
        };
        let present = match (wire.present, Digest::try_from(&wire.content[..])) {
            (false, _) if wire.content.is_empty() => None,
            (true, Ok(content)) => Some(Present::ByContent(content)),
            (true, Err(_)) if wire.content.is_empty() => Some(Present::ByTime),
            _ => return Err(malformed(&path, "a digest that is not one")),
        };
        let archived = wire.archived.map(|it| Box::new(Archived::of_wire(it)));
        let mode_bits = if archived.is_some() { 0o7777 } else { 0o777 };
        let entry = Self {
            present,
            mode: wire.mode & mode_bits,
            mtime: Mtime {
                seconds: wire.mtime_seconds,
                nanos: wire.mtime_nanos,
            },
            path,
            kind,
            archived,
        };
        if wire.size != entry.size() || !wire.extents.is_empty() {
            return Err(malformed(&entry.path, "content without a file"));
        }
        let has_extents = entry
            .file()
            .is_none_or(|(_, extents)| !extents.0.is_empty());
        if entry.present.is_some() && has_extents {
            return Err(malformed(
                &entry.path,
                "a present entry that is not a whole file",
            ));
        }
        entry.check_archived()?;
        if entry.mtime.nanos >= 1_000_000_000 {
            return Err(malformed(&entry.path, "more nanoseconds than a second has"));
        }
        match entry.check() {
            Ok(()) => Ok(entry),
            Err(why) => Err(PayloadError::Refused(entry.path, why)),
        }
    }

    /// Checks that an entry has archived attributes of its kind only.
    fn check_archived(&self) -> Result<(), PayloadError> {
        let is_right = match &self.kind {
            EntryKind::File { .. } | EntryKind::Directory => true,
            EntryKind::Symlink { .. } => !self.archived.as_ref().is_some_and(|it| it.is_extended()),
            EntryKind::HardLink { target } => {
                *self == Entry::hard_link(self.path.clone(), target.clone())
            }
        };
        let why = Refusal::Malformed("attributes that its kind does not have");
        let refused = || PayloadError::Refused(self.path.clone(), why);
        is_right.then_some(()).ok_or_else(refused)
    }

    /// Returns the entry that a `stat` call has found.
    pub(super) fn of(found: &Stat, path: PathBuf, kind: EntryKind) -> Self {
        Self {
            path,
            kind,
            mode: found.st_mode & 0o777,
            mtime: Mtime::of(found),
            present: None,
            archived: None,
        }
    }

    fn to_wire(&self) -> pb::FileEntry {
        use pb::file_entry::Kind as WireKind;
        let (kind, target) = match &self.kind {
            EntryKind::File { .. } => (WireKind::File, Bytes::new()),
            EntryKind::Directory => (WireKind::Directory, Bytes::new()),
            EntryKind::Symlink { target } => (WireKind::Symlink, to_bytes(target)),
            EntryKind::HardLink { target } => (WireKind::HardLink, to_bytes(target)),
        };
        pb::FileEntry {
            path: to_bytes(&self.path),
            kind: kind.into(),
            mode: self.mode,
            mtime_seconds: self.mtime.seconds,
            mtime_nanos: self.mtime.nanos,
            size: self.size(),
            target,
            extents: self
                .file()
                .map_or(Vec::new(), |(_, extents)| extents.0.clone()),
            present: self.present.is_some(),
            content: match &self.present {
                Some(Present::ByContent(content)) => Bytes::copy_from_slice(content),
                Some(Present::ByTime) | None => Bytes::new(),
            },
            archived: self.archived.as_ref().map(|it| it.to_wire()),
        }
    }
}

impl Mtime {
    /// Time of a root directory that keeps the time of its creation.
    pub const LEAVE: Self = Self {
        seconds: 0,
        nanos: 0,
    };

    /// Returns the time in the result of a `stat` call.
    pub(super) fn of(found: &Stat) -> Self {
        Self {
            seconds: found.st_mtime,
            // The kernel keeps it below 10^9.
            nanos: found.st_mtime_nsec as u32,
        }
    }
}

fn check_path(path: &[u8]) -> Result<(), Refusal> {
    if path.is_empty() {
        return Ok(());
    }
    if path.len() > PATH_BYTES_MAX {
        return Err(Refusal::PathTooLong);
    }
    // Split by bytes, since `Path::components` accepts `a//b` and `a/./b`.
    let plain = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
    match path.split(|&byte| byte == b'/').all(plain) {
        true => Ok(()),
        false => Err(Refusal::PathNotPlain),
    }
}

/// Returns whether a link can be followed without leaving the message, whatever other links are in
/// its target. A `..` is safe only at the start, where it climbs from a real directory: in `a/..`
/// it is the parent of the target of `a`.
fn stays_inside(link: &Path, target: &Path) -> bool {
    let mut depth = link.components().count().saturating_sub(1);
    let mut descending = false;
    for component in target.components() {
        match component {
            Component::Normal(_) => descending = true,
            Component::CurDir => {}
            Component::ParentDir if !descending && depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    let target = target.as_os_str().as_bytes();
    !target.is_empty() && !target.contains(&0)
}

fn to_path(bytes: &Bytes) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

fn to_bytes(path: &Path) -> Bytes {
    Bytes::copy_from_slice(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::extents::MAX_HOLES;
    use super::*;

    fn symlink(path: &str, target: &str) -> Entry {
        Entry {
            path: path.into(),
            kind: EntryKind::Symlink {
                target: target.into(),
            },
            mode: 0o777,
            mtime: Mtime::LEAVE,
            present: None,
            archived: None,
        }
    }

    #[test]
    fn links_stay_inside_or_could_leave() {
        for (link, target, stays) in [
            ("l", "a", true),
            ("l", "./a/b", true),
            ("d/l", "..", true),
            ("d/l", "../a", true),
            ("d/e/l", "../../a", true),
            ("l", "..", false),
            ("l", "/etc", false),
            ("d/l", "../..", false),
            ("d/l", "../../etc", false),
            // With `d/e/a -> ../..` this leads outside, though it seems to stay inside.
            ("d/e/l", "a/../x", false),
            ("l", "", false),
            ("l", "a\0b", false),
        ] {
            let leaves = || Refusal::SymlinkLeaves(target.into());
            let expected = if stays { Ok(()) } else { Err(leaves()) };
            assert_eq!(
                symlink(link, target).check(),
                expected,
                "{link} -> {target}"
            );
        }
    }

    #[test]
    fn longest_entry_fits_the_bound() {
        let name = "n".repeat(PATH_BYTES_MAX);
        let mut entry = symlink(&name, &name);
        entry.mtime = Mtime {
            seconds: i64::MIN,
            nanos: u32::MAX,
        };
        assert_eq!(entry.check(), Ok(()));
        assert!(entry.encode().len() < ENTRY_BYTES_MAX);
        // The maximum number of holes, far apart.
        let lengths = vec![u64::MAX >> 11; 2 * MAX_HOLES + 1];
        let size = lengths.iter().sum();
        entry.kind = EntryKind::File {
            size,
            extents: Extents::parse(lengths, size).expect("they describe it"),
        };
        let encoded = entry.encode();
        assert!(encoded.len() < ENTRY_BYTES_MAX, "{}", encoded.len());
    }
}
