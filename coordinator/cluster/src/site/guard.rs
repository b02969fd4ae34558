//! Security of a cluster's connections: the choice of the method, and the admission of each
//! process.

pub mod kind;

use std::io;

use anyhow::anyhow;
use flitcast_node::security::{Identity, Name, Security, SecurityError};
use flitcast_proto::PeId;
use flitcast_proto::wire::Secret;
use flitcast_proto::wire::admission::Admission;
use thiserror::Error;

pub use kind::Guard;

use crate::options::transfer::GuardArgs;
use crate::site::authority::Ephemeral;
use crate::site::placement::Placement;
use crate::site::settings::Settings;
use crate::system::process::drawn;

impl GuardArgs {
    /// Returns the typed options, or else those of a cluster file.
    pub fn or(&self, settings: &Settings) -> GuardArgs {
        let folder = settings.credentials.as_ref().map(|it| it.folder.clone());
        let folder = folder.filter(|_| !self.insecure);
        GuardArgs {
            credentials: self.credentials.clone().or(folder),
            insecure: self.insecure,
        }
    }
}

impl Guard {
    /// Chooses the security: as requested, else as the running cluster has it, else by the
    /// addresses.
    pub fn choose(args: &GuardArgs, placement: &Placement) -> Guard {
        match (&args.credentials, args.insecure) {
            (Some(folder), _) => Guard::Credentials(folder.clone()),
            (None, true) => Guard::Insecure,
            (None, false) => match &placement.kept {
                Some(kept) => kept.guard.clone(),
                None if placement.is_on_loopback() && !placement.is_slurm() => Guard::Secret,
                None => Guard::MadeForTheRun,
            },
        }
    }

    /// Checks the coordinator's part of the security.
    ///
    /// # Errors
    ///
    /// Returns an error if the folder lacks a valid certificate, if the running cluster has another
    /// security, or if any process could join although this was not requested.
    pub fn check(&self, placement: &Placement) -> Result<(), GuardOptionsError> {
        let kept = placement.kept.as_ref();
        if kept.is_some_and(|kept| !kept.guard.is(self)) {
            return Err(GuardOptionsError::Refused(KEPT_OTHERWISE));
        }
        match self {
            Guard::Credentials(folder) => {
                Identity::load(folder, Name::Coordinator)?;
                Ok(())
            }
            // A process that joins has neither the secret nor a certificate of this launch, on
            // loopback as well. Tasks of Slurm find theirs in a folder.
            Guard::Secret | Guard::MadeForTheRun
                if placement.is_joined() && !placement.is_slurm() =>
            {
                Err(GuardOptionsError::Refused(UNGUARDED))
            }
            _ => Ok(()),
        }
    }

    /// Checks that the PEs may read and write files, and run commands: they can authenticate the coordinator.
    pub fn check_files(&self, placement: &Placement) -> Result<(), GuardOptionsError> {
        let refused = match (self, &placement.kept) {
            (Guard::Insecure, Some(_)) => KEPT_FOR_ANYBODY,
            (Guard::Insecure, None) if placement.is_joined() => JOINED_ANYBODY,
            _ => return Ok(()),
        };
        Err(GuardOptionsError::Refused(refused))
    }
}

/// An error of the requested security.
#[derive(Debug, Error)]
pub enum GuardOptionsError {
    #[error("--credentials: {0}")]
    Credentials(#[from] SecurityError),
    /// The security does not fit the cluster or the command; the text is the reason.
    #[error("{0}")]
    Refused(&'static str),
}

const UNGUARDED: &str = "processes that join must show who they are: --credentials DIR \
    (`flitcast ca init` makes one), or else --insecure, for anybody to be let in";
const JOINED_ANYBODY: &str = "PEs that join with --insecure play synthetic messages only, since they \
    do not know at whose word they would read and write files, or run commands: give both ends \
    --credentials DIR (`flitcast ca init` makes one)";
const KEPT_FOR_ANYBODY: &str = "PEs that are kept with --insecure play synthetic messages only, since \
    they do not know at whose word they would read and write files, or run commands: leave out \
    --insecure, and take the cluster down and up again";
/// Reason why commands are not sent unencrypted.
pub const PLAIN_COMMANDS: &str = "with --insecure, anybody on the way could run commands on the hosts \
    of the PEs: leave it out, and certificates are made for the run";
const KEPT_OTHERWISE: &str = "this cluster is up with the security that `flitcast up` fixed; omit \
    --credentials and --insecure, or take it down";

/// The security of one launch.
pub struct Guarded {
    pub cluster: u64,
    pub secret: Secret,
    /// Security of the coordinator's connections.
    pub security: Security,
    ephemeral: Option<Ephemeral>,
}

impl Guarded {
    /// Draws a secret, and creates or loads certificates.
    ///
    /// # Errors
    ///
    /// Returns an error if the system provides no random numbers or a certificate is invalid.
    pub fn new(guard: &Guard) -> anyhow::Result<Guarded> {
        let mut ephemeral = None;
        let security = match guard {
            Guard::Secret | Guard::Insecure => Security::Plain,
            Guard::Credentials(folder) => Security::Tls(Identity::load(folder, Name::Coordinator)?),
            Guard::MadeForTheRun => {
                let made = ephemeral.insert(Ephemeral::new().map_err(unissued)?);
                let own = made.credentials(Name::Coordinator).map_err(unissued)?;
                Security::Tls(Identity::issued(&own, Name::Coordinator)?)
            }
        };
        Ok(Guarded {
            cluster: random_id().map_err(undrawn)?,
            secret: Secret::new(drawn().map_err(undrawn)?),
            security,
            ephemeral,
        })
    }

    pub fn admission(&self, pe: PeId) -> anyhow::Result<Admission> {
        let made = self.ephemeral.as_ref();
        let credentials = made.map(|made| made.credentials(Name::Pe(pe)).map_err(unissued));
        Ok(Admission {
            cluster: self.cluster,
            secret: self.secret,
            credentials: credentials.transpose()?,
        })
    }
}

fn unissued(error: rcgen::Error) -> anyhow::Error {
    anyhow!("cannot make a certificate: {error}")
}

fn undrawn(error: io::Error) -> anyhow::Error {
    anyhow!("cannot draw a secret: {error}")
}

pub fn random_id() -> io::Result<u64> {
    Ok(u64::from_ne_bytes(drawn()?))
}
