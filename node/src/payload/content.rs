//! The files of a message.

use std::path::{Path, PathBuf};
use std::sync::Arc;

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
