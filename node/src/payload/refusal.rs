//! The reason why an entry is refused, and how errors show paths.

use std::path::{Path, PathBuf};

use crate::system::lent;

/// Maximum length of a path and of a link target in bytes: the limit of a system call of Linux is
/// 4,096 with the NUL. So the path of each entry inside the message can be passed to one.
pub(super) const PATH_BYTES_MAX: usize = 4095;

/// Reason why an entry is refused as a part of a message.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it is {0}; only regular files, directories and symlinks can be sent")]
    Special(&'static str),
    #[error("a message cannot be a symlink itself; put what it points to in its place")]
    RootSymlink,
    /// A symlink whose target could be outside of the message.
    #[error(
        "its target {} is absolute, leaves the message, or has `..` after a name; \
         only symlinks that stay inside can be sent",
        shown(.0)
    )]
    SymlinkLeaves(PathBuf),
    /// A hard link at the root of a message, or without the path of a file.
    #[error("it is a hard link to nothing in the message")]
    HardLinkTarget,
    #[error("its extended attributes are longer than 128 KiB, or more than 1024")]
    ExtendedTooLong,
    /// An owner, extended attributes or a hard link outside of an archive.
    #[error("it has attributes of an archive, which this message is not")]
    NotArchive,
    #[error("its path is longer than {PATH_BYTES_MAX} bytes")]
    PathTooLong,
    /// A path that is absolute, or has a component that is empty, `.`, `..` or contains a NUL.
    #[error("its path is not a plain relative one")]
    PathNotPlain,
    /// An encoding that is not an entry in this version of the protocol.
    #[error("the entry is malformed: {0}")]
    Malformed(&'static str),
    #[error("it comes before the message's root")]
    BeforeRoot,
    /// An entry below a root that is a regular file.
    #[error("the message is a single file, and that has no more entries")]
    BesideFile,
    /// An entry whose directory was not sent before, or was followed by an entry outside of it.
    #[error("its directory does not come before it in the message, with all that is in there")]
    NoParent,
    #[error("it is in the message twice")]
    Duplicate,
}

/// Returns a path in backticks, escaped: names come from other hosts and are shown on terminals.
pub(super) fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return "the message's root".to_owned();
    }
    let quoted = format!("{:?}", lent::as_named(path));
    format!("`{}`", &quoted[1..quoted.len() - 1])
}
