//! Why a cluster did not come up, and with whom.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use flitcast_proto::PeId;
use thiserror::Error;

use super::Exit;
use super::launching::LAUNCH;
use crate::launch::starter::StarterError;
use crate::site::guard::GuardError;
use crate::text::words::names;

/// Why a cluster did not come up.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The operating system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// Not everybody registered in time.
    #[error("after {} s there is still no word from {}", LAUNCH.as_secs(), names(.missing))]
    Missing {
        /// Who.
        missing: Vec<PeId>,
    },
    /// Not everybody joined in time.
    #[error(
        "after {} s {} {} yet to join at {at}: start what plays {} with `flitcast node --join {at} --pe {} ..` there",
        waited.as_secs_f64(), names(missing), match missing.len() { 1 => "has", _ => "have" },
        match missing.len() { 1 => "it", _ => "each" },
        missing.first().map_or(0, |pe| pe.0)
    )]
    NotJoined {
        /// Who.
        missing: Vec<PeId>,
        /// Where they could have.
        at: SocketAddr,
        /// How long they could have.
        waited: Duration,
    },
    /// Who joined leaves when one cluster is over, and there would be another one.
    #[error(
        "{} would leave after one cluster, and this command may need several: --retry, map, bench and calibrate do; start {} with `flitcast node --join .. --stay`",
        names(pes), match pes.len() { 1 => "it", _ => "each" }
    )]
    LeaveTooSoon {
        /// Who.
        pes: Vec<PeId>,
    },
    /// Who joined does not do what this cluster is for.
    #[error(
        "{} may not be told to run commands: start {} with `flitcast node --join .. --commands`",
        names(pes), match pes.len() { 1 => "it", _ => "each" }
    )]
    NoCommands {
        /// Who.
        pes: Vec<PeId>,
    },
    /// A process ended before it registered, and perhaps others, which this does not tell.
    #[error("{first}")]
    Died {
        /// Which failed first.
        first: Box<Death>,
        /// And which did then, while the others were awaited.
        others: Vec<Death>,
    },
    /// What has the PEs started did not.
    #[error(transparent)]
    Starter(StarterError),
    /// Nobody wants it any more.
    #[error("it was given up")]
    GivenUp,
    /// Connections cannot be guarded.
    #[error(transparent)]
    Guard(#[from] GuardError),
    /// A process of this launch shows the certificate of another.
    #[error("who says to be {pe}, from {address}: {why}")]
    Disguised {
        /// Whom it says to be.
        pe: PeId,
        /// From where.
        address: SocketAddr,
        /// What is wrong with its certificate.
        why: String,
    },
    /// Two processes of this launch say to be the same.
    #[error("two processes say to be {pe}: one from {first}, one from {second}")]
    Twice {
        /// Whom.
        pe: PeId,
        /// From where the first registered.
        first: SocketAddr,
        /// From where the second did.
        second: SocketAddr,
    },
}

/// A process that ended before it registered.
#[derive(Debug, Error)]
#[error("{pe} {exit}{}{}", too_soon(.exit), after(.last_words))]
pub struct Death {
    /// Who.
    pub pe: PeId,
    /// How.
    pub exit: Exit,
    /// What it had said on stderr.
    pub last_words: Vec<String>,
}

impl LaunchError {
    /// Whose fault it is, where one can be named.
    pub fn pe(&self) -> Option<PeId> {
        self.pes().first().copied()
    }

    /// Who failed besides whom the error names.
    pub fn others(&self) -> &[Death] {
        match self {
            LaunchError::Died { others, .. } => others,
            _ => &[],
        }
    }

    /// All whose fault it is.
    pub fn pes(&self) -> Vec<PeId> {
        match self {
            // Nobody failed: leaving somebody out would not help.
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
