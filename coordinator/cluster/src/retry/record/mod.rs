//! The record of a round that has begun or failed, in TOML: all that `flitcast resume` needs to
//! continue the round. `content` writes records, and `read` reads them.
//!
//! ```toml
//! version = 5
//! undertaking = "5d0c9a5b17f3e2a4"
//! operation = "scatter"
//! algorithm = "fdf"
//! parents = [0, 0, 1]
//! input = "/data/shards"
//! output = "/data/out"
//! bytes = [10, 20, 30]
//! delivered = [3]
//! versions = ["3 30 8f14e45fceea167a 5d41402abc4b2a76b9719d911017c592"]
//! [[dead]]
//! pe = 1
//! why = "killed by signal 9 (SIGKILL)"
//! ```

mod content;
mod read;

use std::path::Path;

use crate::files::user_file::{self, FileError, FileKind};

pub use content::Record;
pub use read::parse;

const FILE: FileKind = FileKind {
    name: "record of a round",
    // 144 bytes for each possible delivery: the length, the name and the version.
    max_bytes: 144 * (crate::options::pes::MAX_LOCAL_PES as u64).pow(2),
};

pub fn load(path: &Path) -> Result<Record, FileError> {
    user_file::load(FILE, path, parse)
}

#[cfg(test)]
mod tests;
