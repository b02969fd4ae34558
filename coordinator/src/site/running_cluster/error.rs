//! Errors of running clusters.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::files::runtime_dir::RuntimeDirError;

/// An error of a running cluster.
#[derive(Debug, Error)]
pub enum RunningClusterError {
    /// There is no directory for the state.
    #[error(transparent)]
    RuntimeDir(#[from] RuntimeDirError),
    /// A file of the state cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file of the state is invalid.
    #[error("{}: {why}; `flitcast down` takes it away", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        why: String,
    },
    /// The cluster file has changed.
    #[error(
        "{} has changed since `flitcast up`: take the cluster down (flitcast down {}) and up again",
        .0.display(),
        .0.display()
    )]
    Changed(PathBuf),
    /// Another command uses the cluster.
    #[error("{name} is in use: {holder}")]
    InUse {
        /// Name of the cluster.
        name: String,
        /// Command that uses it.
        holder: String,
    },
    /// The requested root or spanning tree differs from that of the running cluster.
    #[error(
        "{option}: this cluster is up with {option} {up}, and its PEs are numbered by that: leave it out, or take the cluster down"
    )]
    Otherwise {
        /// Option.
        option: &'static str,
        /// Value in the running cluster.
        up: String,
    },
}

/// Adds the path to an error.
pub fn at(path: &Path) -> impl FnOnce(io::Error) -> RunningClusterError {
    let path = path.to_owned();
    move |source| RunningClusterError::Io { path, source }
}
