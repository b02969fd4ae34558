//! Errors of an authority's folder, and the names that users give its certificates.

use std::io;
use std::path::PathBuf;

use flitcast_node::security::{Name, SecurityError};
use flitcast_proto::PeId;
use flitcast_proto::tree::MAX_PES;
use thiserror::Error;

/// Maximum validity in days, ten years: a longer period would be forgotten.
pub const MOST_DAYS: u32 = 3660;

/// An error of a folder of certificates, or of a request about it.
#[derive(Debug, Error)]
pub enum CaError {
    /// The folder is not empty.
    #[error("{}: there is something here already; an authority is founded in an empty folder", .0.display())]
    Taken(PathBuf),
    /// An unknown name.
    #[error("`{0}`: unknown name; write coordinator, or p and a PE's number")]
    Nobody(String),
    /// The number of PEs is 0 or too large.
    #[error("--pes {0}: from 1 to {MAX_PES}")]
    Pes(u32),
    /// The validity is 0 or too long.
    #[error("{option} {days}: from 1 to {MOST_DAYS}")]
    Days {
        /// Option.
        option: &'static str,
        /// Value as typed.
        days: u32,
    },
    /// The authority's files are invalid.
    #[error(transparent)]
    Security(#[from] SecurityError),
    /// The certificate cannot be created.
    #[error("cannot make the certificate of {name}: {source}")]
    Issue {
        /// Name in the certificate.
        name: String,
        /// Cause.
        source: rcgen::Error,
    },
    /// The revocation list cannot be created.
    #[error("cannot make the list of revoked certificates: {source}")]
    List {
        /// Cause.
        source: rcgen::Error,
    },
    /// No certificate can be revoked.
    #[error("{0} has no certificate that was issued here and is still good")]
    NotIssued(String),
    /// Another command is changing the folder; both would overwrite each other's changes.
    #[error("{}: another `flitcast ca` is changing this folder; try again when it has ended", .0.display())]
    Busy(PathBuf),
    /// The ledger contains an invalid line.
    #[error("{}:{line}: this line was not written by `flitcast ca`", path.display())]
    Ledger {
        /// Path of the ledger.
        path: PathBuf,
        /// Number of the line.
        line: usize,
    },
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("{}: {source}", path.display())]
    Write {
        /// Path of the file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// Parses a name: `coordinator`, or `p3`.
pub fn name(text: &str) -> Result<Name, CaError> {
    let name = match text.strip_prefix(['p', 'P']) {
        Some(number) => number.parse().ok().map(|pe| Name::Pe(PeId(pe))),
        None => (text == "coordinator").then_some(Name::Coordinator),
    };
    name.ok_or_else(|| CaError::Nobody(text.chars().take(40).collect()))
}
