//! Errors of measuring, reading and writing the files of a message.

use std::io;
use std::path::{Path, PathBuf};

use flitcast_proto::MessageId;
use rustix::io::Errno;

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
        why: String,
    },
    /// The message is longer than 2^64 - 1 bytes, which sparse files can cause.
    #[error("the message is longer than a message can be at {}: send less", shown(.path))]
    TooLong {
        /// The entry at which the count overflowed.
        path: PathBuf,
    },
    /// An input or a destination that no message can be read from or written to.
    #[error("{0}")]
    Unusable(String),
    /// The destination exists and must not be replaced.
    #[error("{} exists already: move it away, or ask for it to be replaced", shown(.path))]
    Exists {
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
