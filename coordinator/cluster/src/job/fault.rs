//! The errors of a command line that several checks find. Most are sentences where they are found.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use flitcast_proto::round::ProtocolError;
use thiserror::Error;

use crate::options::transfer::GuardArgs;
use crate::options::tree::TreeArgs;
use crate::site::guard::GuardOptionsError;
use crate::site::settings::{Credentials, Settings};
use crate::site::topology::of_option;
use crate::text::faults::Faults;

/// The error that no option gives the messages.
#[derive(Debug, Error)]
#[error(
    "there is nothing to send: give files with --input DIR --output DIR, or synthetic messages with --size SIZE or --lengths LENGTHS"
)]
pub struct NoPayload;

/// Reason why there is no choice on links between hosts that nothing describes.
pub const UNKNOWN_LINKS: &str = "the links between these hosts are not known: measure them with \
    `flitcast calibrate`, and give --profile FILE";

/// Returns the error of a prediction that failed, so that there is no choice.
pub fn no_choice(fault: ProtocolError) -> anyhow::Error {
    anyhow!("--algorithm auto: the schedule contradicts itself: {fault}")
}

/// Returns the error of an output that cannot be written.
pub fn of_output(path: &Path, why: impl Display) -> anyhow::Error {
    anyhow!("--output {}: {why}", path.display())
}

/// Adds the option to all errors in its value.
pub fn of_all<T>(option: &str, read: Result<T, Vec<String>>) -> Result<T, Faults> {
    read.map_err(|all| Faults::all(all.into_iter().map(of_option(option))))
}

/// Returns an error for a relative path, which depends on the directory in which a PE was started.
pub fn relative(option: &str, path: Option<&PathBuf>) -> Option<anyhow::Error> {
    let path = path.filter(|path| path.is_relative())?.display();
    Some(anyhow!(
        "{option} {path}: it is a path on the hosts of the PEs, which run elsewhere: give it from the root"
    ))
}

/// Returns the error in certificates, with the place where their folder was named.
pub fn guard_fault(
    typed: &GuardArgs,
    tree: &TreeArgs,
    settings: &Settings,
    fault: GuardOptionsError,
) -> anyhow::Error {
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
        ) => anyhow!("{}:{spot}: credentials: {source}", file.display()),
        (fault, ..) => fault.into(),
    }
}
