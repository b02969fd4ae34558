//! What can go wrong with the files of a message, on either side.

use std::io;
use std::path::{Path, PathBuf};

use flitcast_proto::PeId;
use rustix::io::Errno;

use super::entry::Refusal;
use super::others::Others;

/// A message made of files cannot be measured, read or written.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// The file system said no.
    #[error("cannot {action} {}: {source}{}", shown(.path), advice(.source))]
    Io {
        /// What was tried, as in "cannot `action` `path`".
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// An entry that no message may hold; on the receiving side the sender is at fault.
    #[error("{} is refused: {why}", shown(.path))]
    Refused {
        /// Of the file on the sending side; inside the message on the receiving side.
        path: PathBuf,
        /// What is wrong with it.
        why: Refusal,
    },
    /// The input is no longer what was measured, or was written to meanwhile.
    #[error("{} changed while it was being read: leave the input alone during a run", shown(.path))]
    Changed {
        /// The file, or the whole input where no single file is to blame.
        path: PathBuf,
    },
    /// The message is longer than 2^64 - 1 bytes (sparse files can be).
    #[error("the message is longer than a message can be at {}: send less", shown(.path))]
    TooLong {
        /// Where the count overflowed.
        path: PathBuf,
    },
    /// Something in the input directory is not named after a PE.
    #[error("{} names no PE; {others}", shown(.name))]
    NamesNoPe {
        /// Its name in the input directory.
        name: PathBuf,
        /// Who has a message.
        others: Others,
    },
    /// The input directory holds something for the root.
    #[error("`p{}` is the root of the tree and has no message of its own; {others}", .root.0)]
    NamesRoot {
        /// The root.
        root: PeId,
        /// Who has a message.
        others: Others,
    },
    /// The folder of what a PE has for each other one holds something for itself.
    #[error("{}: a PE has no message for itself", shown(.name))]
    NamesItself {
        /// Its name in the input directory.
        name: PathBuf,
    },
    /// What a PE has for each other one is no folder.
    #[error("{} is no folder: it should be one with an entry p1, p2, .. for each PE that {pe} has something for", shown(.folder))]
    NoFolder {
        /// What should be one.
        folder: PathBuf,
        /// Whose.
        pe: PeId,
    },
    /// The input directory cannot belong to this tree.
    #[error("{} has {entries} entries for {} PEs; {others}", shown(.dir), .others.count())]
    TooManyEntries {
        /// The input directory.
        dir: PathBuf,
        /// How many entries it has.
        entries: usize,
        /// Who has a message.
        others: Others,
    },
    /// There are files to deal, and the tree is one PE alone.
    #[error("the files below {} can be dealt to nobody; this tree has no PE but {root}", shown(.dir))]
    NobodyToDealTo {
        /// The directory to be dealt.
        dir: PathBuf,
        /// The only PE.
        root: PeId,
    },
    /// The destination is taken, and replacing was not asked for.
    #[error("{} exists already: move it away, or ask for it to be replaced", shown(.path))]
    Exists {
        /// The destination.
        path: PathBuf,
    },
    /// The destination has no name (`/`, `..`) that could be staged beside.
    #[error("{} cannot be a destination: it has no file name", shown(.path))]
    Unnamed {
        /// The destination.
        path: PathBuf,
    },
    /// The message ended in mid-entry or before its first, or had to be refused.
    #[error("the message for {} is not whole; nothing was delivered", shown(.destination))]
    Incomplete {
        /// Where the message was to be delivered.
        destination: PathBuf,
    },
}

impl PayloadError {
    /// For `map_err`: the file system's answer to an `action` on `path`.
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

    /// Whether it is this process that may open no more, and nothing is wrong with the files.
    pub fn lacks_descriptors(&self) -> bool {
        matches!(self, Self::Io { source, .. } if is_out_of_descriptors(source))
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

fn advice(error: &io::Error) -> &'static str {
    match is_out_of_descriptors(error) {
        true => ": raise the limit with `ulimit -n`",
        false => "",
    }
}

/// A path in backticks, escaped: names come from other hosts and end in terminals.
pub(super) fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return "the message's root".to_owned();
    }
    let quoted = format!("{path:?}");
    format!("`{}`", &quoted[1..quoted.len() - 1])
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
