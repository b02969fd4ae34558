//! Errors of measuring, reading and writing the files of a message.

use std::io;
use std::path::{Path, PathBuf};

use flitcast_proto::MessageId;
use rustix::io::Errno;

use crate::system::lent;
use crate::system::process::file_size_limit;

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

#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    #[error("cannot {action} {}: {source}{}", shown(.path), advice(.source))]
    Io {
        /// The action that failed, as in "cannot `action` `path`".
        action: &'static str,
        /// The path that the action was on.
        path: PathBuf,
        source: io::Error,
    },
    /// An entry that no message may contain; at the receiver it is a fault of the sender. The path is
    /// that of the file at the sender, and the one inside the message at the receiver.
    #[error("{} is refused: {}", shown(.0), .1)]
    Refused(PathBuf, Refusal),
    /// The input no longer matches its measurement, or was written to while it was read: this file,
    /// or the whole input if no single file is at fault.
    #[error("{} changed while it was being read: leave the input alone during a run", shown(.0))]
    Changed(PathBuf),
    /// A file that is taken from the entry which a message replaces is no longer as it was compared.
    #[error(
        "{} changed since it was compared with the input: run the command again, and leave the output alone meanwhile",
        shown(.0)
    )]
    NoLongerPresent(PathBuf),
    /// The entry of this message is not the version that an earlier run of the job has read.
    #[error(
        "{}: {}; put the version back that the run began with, \
         or send this one to all with `flitcast resume RECORD --force`",
        shown(.0), .2
    )]
    OtherVersion(PathBuf, MessageId, String),
    #[error("the message is longer than a message can be at {}: send less", shown(.0))]
    TooLong(PathBuf),
    /// An input or a destination that no message can be read from or written to.
    #[error("{0}")]
    Unusable(String),
    #[error("{} exists already: move it away, or ask for it to be replaced", shown(.0))]
    Exists(PathBuf),
    /// The message ended inside an entry or before its first one, or was refused.
    #[error("the message for {} is not whole; nothing was delivered", shown(.0))]
    Incomplete(PathBuf),
}

impl PayloadError {
    /// Returns a function for `map_err` that adds an action and a path to an I/O error.
    pub(crate) fn io<E: Into<io::Error>>(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::Io {
            action,
            path: path.to_owned(),
            source: source.into(),
        }
    }

    /// Returns the message whose version differs from the one that the run began with, if any.
    pub fn other_version(&self) -> Option<MessageId> {
        match self {
            Self::OtherVersion(_, message, _) => Some(*message),
            _ => None,
        }
    }

    /// Returns whether the process or the system has run out of file descriptors.
    pub fn lacks_descriptors(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_out_of_descriptors(source))
    }

    /// Returns the path of the entry that cannot be sent, if one entry is at fault.
    pub fn entry(&self) -> Option<&Path> {
        match self {
            Self::Io { path, .. }
            | Self::Refused(path, _)
            | Self::Changed(path)
            | Self::TooLong(path) => Some(path),
            _ => None,
        }
    }
}

/// Returns all results, or all errors if there are some.
pub(super) fn all_or_faults<T>(
    results: impl IntoIterator<Item = Result<T, PayloadError>>,
) -> Result<Vec<T>, Vec<PayloadError>> {
    let (mut all, mut faults) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(one) => all.push(one),
            Err(fault) => faults.push(fault),
        }
    }
    whole(all, faults)
}

/// Returns the result, unless there are faults.
pub(super) fn whole<T>(all: T, faults: Vec<PayloadError>) -> Result<T, Vec<PayloadError>> {
    match faults.is_empty() {
        true => Ok(all),
        false => Err(faults),
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

fn advice(error: &io::Error) -> String {
    match (Errno::from_io_error(error), file_size_limit()) {
        (Some(Errno::MFILE | Errno::NFILE), _) => ": raise the limit with `ulimit -n`".to_owned(),
        (Some(Errno::FBIG), Some(bytes)) => {
            format!(": the limit of a file's size is {bytes} bytes; raise it with `ulimit -f`")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lack_of_descriptors_is_explained() {
        let fault = |errno: Errno| PayloadError::io("read", Path::new("a"))(errno);
        let error = fault(Errno::MFILE);
        assert!(error.lacks_descriptors());
        let advice = "raise the limit with `ulimit -n`";
        assert!(error.to_string().ends_with(advice), "{error}");
        assert!(!fault(Errno::ACCESS).lacks_descriptors());
    }
}
