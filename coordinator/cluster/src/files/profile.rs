//! The profile: the measurements of a cluster by `flitcast calibrate`, stored in a file for later
//! commands.
//!
//! It contains the times of wire and software together, and separately the host's share; `model` builds
//! a model from them. `write` has `Profile::text`, `read` has `Profile::parse`.

mod content;
mod read;
mod write;

use std::path::Path;

use flitcast_proto::Tree;

pub use content::{Fit, HOST_COSTS, Profile, Relay, parents};

use crate::files::user_file::{self, FileError, FileKind};

const FILE: FileKind = FileKind {
    name: "profile",
    // 1 KiB for each edge of the largest local cluster, half as much again as it needs.
    max_bytes: 1024 * 1024,
};

impl Profile {
    /// Reads the profile in the file at `path`. With a tree, it must be the tree that was measured.
    pub fn load(path: &Path, tree: Option<&Tree>) -> Result<Profile, FileError> {
        user_file::load(FILE, path, |text| Profile::parse(text, tree))
    }
}

#[cfg(test)]
mod tests;
