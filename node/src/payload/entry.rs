//! One entry of a message: its checked form, and its form on the wire.
//!
//! The only place of the payload that knows the generated `FileEntry`. What is
//! sent and what is received pass the same checks, so that no sender finds out
//! at the end of a round what the receiver will not take. No file is touched here.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use flitcast_proto::wire::pb;
use prost::Message;

use super::error::{PayloadError, shown};

/// Longest path and longest link target: what one call of Linux takes, which counts the NUL
/// behind it to its 4,096 bytes. So all that arrives can be named by its path in the message.
pub(super) const PATH_BYTES_MAX: usize = 4095;

/// Longest encoded `FileEntry`: two full paths leave half of it to the rest.
pub(super) const ENTRY_BYTES_MAX: usize = 16 * 1024;

/// Why an entry is not part of any message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not a regular file, directory or symlink.
    #[error("it is {0}; only regular files, directories and symlinks can be sent")]
    Special(&'static str),
    /// A symlink where the root of a message should be.
    #[error("a message cannot be a symlink itself; put what it points to in its place")]
    RootSymlink,
    /// A symlink whose target could be outside of the message.
    #[error(
        "its target {} is absolute, leaves the message, or has `..` after a name; \
         only symlinks that stay inside can be sent",
        shown(.0)
    )]
    SymlinkLeaves(PathBuf),
    /// Longer than any host takes.
    #[error("its path is longer than {PATH_BYTES_MAX} bytes")]
    PathTooLong,
    /// Absolute, or a component that is empty, `.`, `..` or holds a NUL.
    #[error("its path is not a plain relative one")]
    PathNotPlain,
    /// Not an entry, as far as this version of the protocol knows.
    #[error("the entry is malformed: {0}")]
    Malformed(&'static str),
    /// The first entry is not the message's root.
    #[error("it comes before the message's root")]
    BeforeRoot,
    /// The root is a regular file, so that nothing can be below it.
    #[error("the message is a single file, and that has no more entries")]
    BesideFile,
    /// The directory of an entry was not sent before it, or something outside of that since.
    #[error("its directory does not come before it in the message, with all that is in there")]
    NoParent,
    /// The same path twice.
    #[error("it is in the message twice")]
    Duplicate,
}

/// What stands at one path of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the message's root; empty for the root itself.
    pub(super) path: PathBuf,
    pub(super) kind: EntryKind,
    /// Permission bits, without setuid, setgid and sticky.
    pub(super) mode: u32,
    pub(super) mtime: Mtime,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File { size: u64 },
    Directory,
    Symlink { target: PathBuf },
}

/// A time of last modification, since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mtime {
    pub seconds: i64,
    pub nanos: u32,
}

impl Entry {
    /// The root of a dealt message, which stands nowhere at its source.
    pub(super) fn dealt_root() -> Self {
        Self {
            path: PathBuf::new(),
            kind: EntryKind::Directory,
            mode: 0o755,
            mtime: Mtime::LEAVE,
        }
    }

    pub(super) fn is_root(&self) -> bool {
        self.path.as_os_str().is_empty()
    }

    /// Bytes that follow the entry.
    pub(super) fn size(&self) -> u64 {
        match self.kind {
            EntryKind::File { size } => size,
            EntryKind::Directory | EntryKind::Symlink { .. } => 0,
        }
    }

    /// What both sides ask of an entry by itself, wherever it comes from.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        check_path(self.path.as_os_str().as_bytes())?;
        let EntryKind::Symlink { target } = &self.kind else {
            return Ok(());
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

    /// The length prefix and the entry, as sent ahead of the content.
    pub fn encode(&self) -> Vec<u8> {
        self.to_wire().encode_length_delimited_to_vec()
    }

    /// Bytes of the message that this entry and its content take.
    pub(super) fn message_bytes(&self) -> Option<u64> {
        let entry = self.to_wire().encoded_len();
        let prefix = prost::length_delimiter_len(entry);
        self.size().checked_add((prefix + entry) as u64)
    }

    /// Reads what [`Self::encode`] wrote, without its length prefix.
    pub fn decode(bytes: &[u8]) -> Result<Self, PayloadError> {
        let malformed = |path: &Path, what| PayloadError::refused(path, Refusal::Malformed(what));
        let wire = pb::FileEntry::decode(bytes)
            .map_err(|_| malformed(Path::new("an entry"), "not a FileEntry"))?;
        let path = to_path(&wire.path);
        let kind = match wire.kind() {
            pb::file_entry::Kind::File => EntryKind::File { size: wire.size },
            pb::file_entry::Kind::Directory => EntryKind::Directory,
            pb::file_entry::Kind::Symlink => EntryKind::Symlink {
                target: to_path(&wire.target),
            },
            pb::file_entry::Kind::Unspecified => return Err(malformed(&path, "unknown kind")),
        };
        let entry = Self {
            mode: wire.mode & 0o777,
            mtime: Mtime {
                seconds: wire.mtime_seconds,
                nanos: wire.mtime_nanos,
            },
            path,
            kind,
        };
        if wire.size != entry.size() {
            return Err(malformed(&entry.path, "content without a file"));
        }
        if entry.mtime.nanos >= 1_000_000_000 {
            return Err(malformed(&entry.path, "more nanoseconds than a second has"));
        }
        match entry.check() {
            Ok(()) => Ok(entry),
            Err(why) => Err(PayloadError::refused(&entry.path, why)),
        }
    }

    fn to_wire(&self) -> pb::FileEntry {
        use pb::file_entry::Kind as WireKind;
        let (kind, target) = match &self.kind {
            EntryKind::File { .. } => (WireKind::File, Bytes::new()),
            EntryKind::Directory => (WireKind::Directory, Bytes::new()),
            EntryKind::Symlink { target } => (WireKind::Symlink, to_bytes(target)),
        };
        pb::FileEntry {
            path: to_bytes(&self.path),
            kind: kind.into(),
            mode: self.mode,
            mtime_seconds: self.mtime.seconds,
            mtime_nanos: self.mtime.nanos,
            size: self.size(),
            target,
        }
    }
}

impl Mtime {
    /// On a message's root directory: it keeps the time at which it was made.
    pub const LEAVE: Self = Self {
        seconds: 0,
        nanos: 0,
    };
}

fn check_path(path: &[u8]) -> Result<(), Refusal> {
    if path.is_empty() {
        return Ok(());
    }
    if path.len() > PATH_BYTES_MAX {
        return Err(Refusal::PathTooLong);
    }
    // By bytes, since `Path::components` overlooks `a//b` and `a/./b`.
    let plain = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
    if !path.split(|&byte| byte == b'/').all(plain) {
        return Err(Refusal::PathNotPlain);
    }
    Ok(())
}

/// Whether a link can be followed without leaving the message, whatever other
/// links its target goes through. A `..` is safe only at the start of the target,
/// where it climbs from a real directory: after a name, `a/..` is the parent of
/// whatever `a` points to.
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
    use super::*;

    fn symlink(path: &str, target: &str) -> Entry {
        Entry {
            path: path.into(),
            kind: EntryKind::Symlink {
                target: target.into(),
            },
            mode: 0o777,
            mtime: Mtime::LEAVE,
        }
    }

    #[test]
    fn links_that_stay_inside() {
        for (link, target) in [
            ("l", "a"),
            ("l", "./a/b"),
            ("d/l", ".."),
            ("d/l", "../a"),
            ("d/e/l", "../../a"),
        ] {
            assert_eq!(symlink(link, target).check(), Ok(()), "{link} -> {target}");
        }
    }

    #[test]
    fn links_that_could_leave() {
        for (link, target) in [
            ("l", ".."),
            ("l", "/etc"),
            ("d/l", "../.."),
            ("d/l", "../../etc"),
            // With `d/e/a -> ../..` this is outside, though it looks inside.
            ("d/e/l", "a/../x"),
            ("l", ""),
            ("l", "a\0b"),
        ] {
            let refused = symlink(link, target).check();
            assert_eq!(
                refused,
                Err(Refusal::SymlinkLeaves(target.into())),
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
    }
}
