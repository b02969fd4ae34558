//! Errors of launching a cluster, with the PEs concerned.

use flitcast_proto::PeId;
use thiserror::Error;

use super::exit::Exit;
use crate::text::phrases;

#[derive(Debug, Error)]
#[error("{message}")]
pub struct LaunchError {
    message: String,
    pes: Vec<PeId>,
    others: Vec<Death>,
}

/// A process that ended before it registered.
#[derive(Debug, Error)]
#[error("{pe} {exit}{}{}", too_soon(.exit), phrases::last_words(": ", .last_lines))]
pub struct Death {
    pub pe: PeId,
    pub exit: Exit,
    pub last_lines: Vec<String>,
}

/// An error that is not of a PE: excluding one would not help.
impl From<anyhow::Error> for LaunchError {
    fn from(error: anyhow::Error) -> LaunchError {
        LaunchError::of(Vec::new(), error.to_string())
    }
}

impl LaunchError {
    /// Creates the error of failed PEs.
    pub fn of(pes: Vec<PeId>, message: String) -> LaunchError {
        LaunchError {
            message,
            pes,
            others: Vec::new(),
        }
    }

    /// Creates the error of processes that ended before they registered, at least one. The message
    /// names the first only.
    pub fn died(mut deaths: Vec<Death>) -> LaunchError {
        LaunchError {
            message: deaths[0].to_string(),
            pes: deaths.iter().map(|death| death.pe).collect(),
            others: deaths.split_off(1),
        }
    }

    /// Returns the failed processes besides the one that the message names.
    pub fn others(&self) -> &[Death] {
        &self.others
    }

    pub fn pes(&self) -> &[PeId] {
        &self.pes
    }
}

fn too_soon(exit: &Exit) -> &'static str {
    match exit {
        Exit::NotBegun(_) => "",
        _ => " before it registered",
    }
}
