//! The errors of a command line. Most are sentences where they are found.

use std::path::PathBuf;

use anyhow::anyhow;
use flitcast_proto::round::ProtocolError;
use thiserror::Error;

use crate::options::guard::GuardArgs;
use crate::options::tree::TreeArgs;
use crate::site::guard::GuardOptionsError;
use crate::site::settings::{Credentials, Settings};
use crate::site::topology::of_option;

/// An error in a command line.
#[derive(Debug, Error)]
pub enum RequestError {
    /// No option gives the messages.
    #[error(
        "there is nothing to send: give files with --input DIR --output DIR, or synthetic messages with --size SIZE or --lengths LENGTHS"
    )]
    NoPayload,
    /// A prediction failed, so there is no choice.
    #[error("--algorithm auto: the schedule contradicts itself: {0}")]
    Choice(ProtocolError),
    /// Links between hosts that nothing describes.
    #[error(
        "the links between these hosts are not known: measure them with `flitcast calibrate`, and give --profile FILE"
    )]
    UnknownLinks,
    /// A relative path, which depends on the directory in which a PE was started.
    #[error(
        "{option} {}: it is a path on the hosts of the PEs, which run elsewhere: give it from the root", path.display()
    )]
    Relative {
        /// `--input` or `--output`.
        option: &'static str,
        /// The path as typed.
        path: PathBuf,
    },
    /// The output cannot be written.
    #[error("--output {}: {why}", path.display())]
    Output {
        /// The path as typed.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Invalid certificates.
    #[error(transparent)]
    Guard(#[from] GuardOptionsError),
    /// Any other error, as a sentence.
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

/// Returns one error where there can be several.
pub fn one<T>(fault: impl Into<RequestError>) -> Result<T, Vec<RequestError>> {
    Err(vec![fault.into()])
}

/// Adds the option to all errors in its value.
pub fn of_all<T>(option: &str, read: Result<T, Vec<String>>) -> Result<T, Vec<anyhow::Error>> {
    read.map_err(|all| all.into_iter().map(of_option(option)).collect())
}

/// Returns an error for a relative path, which depends on the directory.
pub fn relative(option: &'static str, path: Option<&PathBuf>) -> Option<RequestError> {
    let path = path.filter(|path| path.is_relative())?.clone();
    Some(RequestError::Relative { option, path })
}

/// Returns the error in certificates, with the place where their folder was named.
pub fn guard_fault(
    typed: &GuardArgs,
    tree: &TreeArgs,
    settings: &Settings,
    fault: GuardOptionsError,
) -> RequestError {
    match (
        fault,
        &typed.credentials,
        &tree.cluster,
        &settings.credentials,
    ) {
        (
            GuardOptionsError::Credentials(source),
            None,
            Some(file),
            Some(Credentials { spot, .. }),
        ) => anyhow!("{}:{spot}: credentials: {source}", file.display()).into(),
        (fault, ..) => fault.into(),
    }
}
