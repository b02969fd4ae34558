//! Errors of measuring, reading and writing the files of a message.

use std::io;
use std::path::{Path, PathBuf};

use flitcast_proto::{MessageId, PeId};
use rustix::io::Errno;

use super::others::Others;
use super::refusal::{Refusal, shown};
use crate::system::process::file_size_limit;

/// Error on the files of a message.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// A system call failed.
    #[error("cannot {action} {}: {source}{}", shown(.path), advice(.source))]
    Io {
        /// The action that failed, as in "cannot `action` `path`".
        action: &'static str,
        /// The path that the action was on.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// An entry that no message may contain; at the receiver it is a fault of the sender.
    #[error("{} is refused: {why}", shown(.path))]
    Refused {
        /// At the sender the path of the file, at the receiver the path inside the message.
        path: PathBuf,
        /// The reason of the refusal.
        why: Refusal,
    },
    /// The input no longer matches its measurement, or was written to while it was read.
    #[error("{} changed while it was being read: leave the input alone during a run", shown(.path))]
    Changed {
        /// The file, or the whole input if no single file is at fault.
        path: PathBuf,
    },
    /// The input is not the version that an earlier run of the job has read.
    #[error(
        "{}: {why}; put the version back that the run began with, \
         or send this one to all with `flitcast resume RECORD --force`",
        shown(.path)
    )]
    OtherVersion {
        /// The entry.
        path: PathBuf,
        /// The message of the entry.
        message: MessageId,
        /// The difference.
        why: Difference,
    },
    /// The message is longer than 2^64 - 1 bytes, which sparse files can cause.
    #[error("the message is longer than a message can be at {}: send less", shown(.path))]
    TooLong {
        /// The entry at which the count overflowed.
        path: PathBuf,
    },
    /// An entry of the input directory is not named after a PE.
    #[error("{} names no PE; {others}", shown(.name))]
    NamesNoPe {
        /// The name in the input directory.
        name: PathBuf,
        /// The PEs that have a message.
        others: Others,
    },
    /// The input directory has an entry for the root.
    #[error("`p{}` is the root of the tree, which has no message; {others}", .root.0)]
    NamesRoot {
        /// The root.
        root: PeId,
        /// The PEs that have a message.
        others: Others,
    },
    /// The folder of a PE's messages to the other PEs has an entry for the PE itself.
    #[error("{}: a PE has no message for itself", shown(.name))]
    NamesItself {
        /// The name in the input directory.
        name: PathBuf,
    },
    /// The entry of a PE in the input of an exchange is not a folder.
    #[error("{} is not a folder; make it a folder with an entry p1, p2, .. for each PE that {pe} has a message for", shown(.folder))]
    NoFolder {
        /// The entry.
        folder: PathBuf,
        /// The PE.
        pe: PeId,
    },
    /// The input directory has more entries than the tree has PEs with a message.
    #[error("{} has {entries} entries for {} PEs; {others}", shown(.dir), .others.count())]
    TooManyEntries {
        /// The input directory.
        dir: PathBuf,
        /// Number of entries.
        entries: usize,
        /// The PEs that have a message.
        others: Others,
    },
    /// The root is the only PE, so its files cannot be dealt.
    #[error("the files below {} cannot be distributed: the only PE is {root}", shown(.dir))]
    NobodyToDealTo {
        /// The directory to be dealt.
        dir: PathBuf,
        /// The only PE.
        root: PeId,
    },
    /// The destination exists and must not be replaced.
    #[error("{} exists already: move it away, or ask for it to be replaced", shown(.path))]
    Exists {
        /// The destination.
        path: PathBuf,
    },
    /// A folder on the path of the destination is a symlink to a path that does not exist.
    #[error("{}: a symlink to what does not exist; make the folder that it leads to, or remove the symlink", shown(.path))]
    Dangling {
        /// The symlink.
        path: PathBuf,
    },
    /// The destination is a mount point, which cannot be replaced.
    #[error("{}: a mount point, which cannot be replaced; unmount it, or choose an output below it", shown(.path))]
    MountPoint {
        /// The destination.
        path: PathBuf,
    },
    /// The destination has no file name (`/`, `..`) from which a staging name can be formed.
    #[error("{} cannot be a destination: it has no file name", shown(.path))]
    Unnamed {
        /// The destination.
        path: PathBuf,
    },
    /// The message ended inside an entry or before its first one, or was refused.
    #[error("the message for {} is not whole; nothing was delivered", shown(.destination))]
    Incomplete {
        /// The destination of the message.
        destination: PathBuf,
    },
}

/// Difference between the version of a message that a run began with and the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// The length differs.
    #[error("changed since the run began: the message had {was} bytes, and has {is} now")]
    Length {
        /// Length at the beginning, in bytes.
        was: u64,
        /// Length now, in bytes.
        is: u64,
    },
    /// The content differs: the digest is not that of the delivered message.
    #[error("changed since the run began: the content is not what was delivered")]
    Content,
    /// A time or an inode differs, and no digest is known to compare the content with.
    #[error("changed since the run began, or was written anew")]
    Touched,
    /// The entry no longer exists.
    #[error("it was there when the run began, and is gone")]
    Gone,
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
            Self::OtherVersion { message, .. } => Some(*message),
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
            | Self::Refused { path, .. }
            | Self::Changed { path }
            | Self::TooLong { path } => Some(path),
            _ => None,
        }
    }

    pub(super) fn refused(path: &Path, why: Refusal) -> Self {
        Self::Refused {
            path: path.to_owned(),
            why,
        }
    }

    pub(super) fn changed(path: &Path) -> Self {
        Self::Changed {
            path: path.to_owned(),
        }
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE))
}

fn advice(error: &io::Error) -> String {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    match (errno, file_size_limit()) {
        _ if is_out_of_descriptors(error) => ": raise the limit with `ulimit -n`".to_owned(),
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
    fn who_may_open_no_more_is_told_what_to_do() {
        let fault = |errno: Errno| PayloadError::io("read", Path::new("a"))(errno);
        let told = fault(Errno::MFILE);
        assert!(told.lacks_descriptors());
        assert!(
            told.to_string()
                .ends_with("raise the limit with `ulimit -n`"),
            "{told}"
        );
        assert!(!fault(Errno::ACCESS).lacks_descriptors());
    }
}
