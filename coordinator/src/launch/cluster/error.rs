//! Errors of launching a cluster, with the PEs concerned.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use flitcast_proto::PeId;
use thiserror::Error;

use super::exit::Exit;
use crate::launch::starter::StarterError;
use crate::site::guard::GuardError;
use crate::text::words::names;
use crate::tuning::LAUNCH;

/// An error of launching a cluster.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// A system call failed.
    #[error("{what}: {source}")]
    Io {
        /// Operation that failed.
        what: String,
        /// Cause of the failure.
        source: io::Error,
    },
    /// Some PEs did not register in time.
    #[error("{}: did not register within {} s", names(.missing), LAUNCH.as_secs())]
    Missing {
        /// PEs that did not register.
        missing: Vec<PeId>,
    },
    /// Some PEs did not join in time.
    #[error(
        "after {} s {} {} yet to join at {at}: start what plays {} with `flitcast node --join {at} --pe {} ..` there",
        waited.as_secs_f64(), names(missing), match missing.len() { 1 => "has", _ => "have" },
        match missing.len() { 1 => "it", _ => "each" },
        missing.first().map_or(0, |pe| pe.0)
    )]
    NotJoined {
        /// PEs that did not join.
        missing: Vec<PeId>,
        /// Address where PEs join.
        at: SocketAddr,
        /// Time that they had.
        waited: Duration,
    },
    /// PEs that joined leave after one cluster, but another one may follow.
    #[error(
        "{} would leave after one cluster, and this command may need several: --retry, map, bench and calibrate do; start {} with `flitcast node --join .. --stay`",
        names(pes), match pes.len() { 1 => "it", _ => "each" }
    )]
    LeaveTooSoon {
        /// PEs that leave.
        pes: Vec<PeId>,
    },
    /// PEs that joined do not run commands, but this cluster needs that.
    #[error(
        "{} may not run commands: start {} with `flitcast node --join .. --commands`",
        names(pes), match pes.len() { 1 => "it", _ => "each" }
    )]
    NoCommands {
        /// PEs that do not run commands.
        pes: Vec<PeId>,
    },
    /// At least one process ended before it registered. The message names the first only.
    #[error("{first}")]
    Died {
        /// The first that ended.
        first: Box<Death>,
        /// Further processes that ended while the others were awaited.
        others: Vec<Death>,
    },
    /// The starter of the PEs failed.
    #[error(transparent)]
    Starter(StarterError),
    /// The launch was cancelled.
    #[error("it was given up")]
    GivenUp,
    /// Connections cannot be secured.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// A process of this launch shows the certificate of another.
    #[error("{pe}: the process at {address} shows an invalid certificate: {why}")]
    Disguised {
        /// PE that the process claims to be.
        pe: PeId,
        /// Address of the process.
        address: SocketAddr,
        /// Fault of its certificate.
        why: String,
    },
    /// Two processes of this launch registered as the same PE.
    #[error("{pe}: registered twice, from {first} and {second}; stop one of the processes")]
    Twice {
        pe: PeId,
        /// Address of the first.
        first: SocketAddr,
        /// Address of the second.
        second: SocketAddr,
    },
}

/// A process that ended before it registered.
#[derive(Debug, Error)]
#[error("{pe} {exit}{}{}", too_soon(.exit), after(.last_words))]
pub struct Death {
    /// PE of the process.
    pub pe: PeId,
    /// Exit of the process.
    pub exit: Exit,
    /// Last lines on stderr.
    pub last_words: Vec<String>,
}

impl LaunchError {
    /// Returns the first failed PE, if the error concerns one.
    pub fn pe(&self) -> Option<PeId> {
        self.pes().first().copied()
    }

    /// Returns the failed processes besides the one that the message names.
    pub fn others(&self) -> &[Death] {
        match self {
            LaunchError::Died { others, .. } => others,
            _ => &[],
        }
    }

    /// Returns all failed PEs.
    pub fn pes(&self) -> Vec<PeId> {
        match self {
            // No PE failed: excluding one would not help.
            LaunchError::Io { .. }
            | LaunchError::GivenUp
            | LaunchError::Guard(_)
            | LaunchError::Starter(_)
            | LaunchError::LeaveTooSoon { .. }
            | LaunchError::NoCommands { .. } => Vec::new(),
            LaunchError::Missing { missing } | LaunchError::NotJoined { missing, .. } => {
                missing.clone()
            }
            LaunchError::Died { first, others } => {
                let others = others.iter().map(|death| death.pe);
                std::iter::once(first.pe).chain(others).collect()
            }
            LaunchError::Disguised { pe, .. } | LaunchError::Twice { pe, .. } => vec![*pe],
        }
    }
}

fn too_soon(exit: &Exit) -> &'static str {
    match exit {
        Exit::NotBegun(_) => "",
        _ => " before it registered",
    }
}

fn after(last_words: &[String]) -> String {
    match last_words.is_empty() {
        true => String::new(),
        false => format!(": {}", last_words.join(" / ")),
    }
}
