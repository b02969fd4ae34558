//! Security of a cluster's connections: the choice of the method, and the admission of each
//! process.

pub mod kind;

use std::io;

use flitcast_node::security::{Identity, Name, Security, SecurityError};
use flitcast_proto::PeId;
use flitcast_proto::wire::Secret;
use flitcast_proto::wire::admission::Admission;
use thiserror::Error;

pub use kind::Guard;

use crate::options::guard::GuardArgs;
use crate::site::authority::Ephemeral;
use crate::site::placement::Placement;
use crate::site::settings::Settings;
use crate::system::random::drawn;

impl GuardArgs {
    /// Returns the typed options, or else those of a cluster file.
    pub fn or(&self, said: &Settings) -> GuardArgs {
        let said = said.credentials.as_ref().map(|said| said.folder.clone());
        let said = said.filter(|_| !self.insecure);
        GuardArgs {
            credentials: self.credentials.clone().or(said),
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
                None if placement.is_on_loopback() => Guard::Secret,
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
        if placement
            .kept
            .as_ref()
            .is_some_and(|kept| !kept.guard.is(self))
        {
            return Err(GuardOptionsError::KeptOtherwise);
        }
        match self {
            Guard::Credentials(folder) => {
                Identity::load(folder, Name::Coordinator)?;
                Ok(())
            }
            // A process that joins has neither the secret nor a certificate of this launch, on
            // loopback as well.
            Guard::Secret | Guard::MadeForTheRun if placement.is_joined() => {
                Err(GuardOptionsError::Unguarded)
            }
            _ => Ok(()),
        }
    }

    /// Checks that the PEs may read and write files, and run commands.
    ///
    /// # Errors
    ///
    /// Returns an error if the PEs cannot authenticate the coordinator.
    pub fn check_files(&self, placement: &Placement) -> Result<(), GuardOptionsError> {
        match (self, &placement.kept) {
            (Guard::Insecure, Some(_)) => Err(GuardOptionsError::KeptForAnybody),
            (Guard::Insecure, None) if placement.is_joined() => {
                Err(GuardOptionsError::JoinedAnybody)
            }
            _ => Ok(()),
        }
    }
}

/// An error of the requested security.
#[derive(Debug, Error)]
pub enum GuardOptionsError {
    /// The coordinator's certificate is invalid.
    #[error("--credentials: {0}")]
    Credentials(#[from] SecurityError),
    /// Processes that join are not authenticated.
    #[error(
        "processes that join must show who they are: --credentials DIR (`flitcast ca init` makes one), or else --insecure, for anybody to be let in"
    )]
    Unguarded,
    /// PEs that joined do not authenticate the coordinator.
    #[error(
        "PEs that join with --insecure play synthetic messages only, since they do not know at whose word they would read and write files, or run commands: give both ends --credentials DIR (`flitcast ca init` makes one)"
    )]
    JoinedAnybody,
    /// PEs of a running cluster do not authenticate the coordinator.
    #[error(
        "PEs that are kept with --insecure play synthetic messages only, since they do not know at whose word they would read and write files, or run commands: leave out --insecure, and take the cluster down and up again"
    )]
    KeptForAnybody,
    /// Commands would be sent unencrypted.
    #[error(
        "with --insecure, anybody on the way could run commands on the hosts of the PEs: leave it out, and certificates are made for the run"
    )]
    PlainCommands,
    /// The options contradict those of `flitcast up`.
    #[error(
        "this cluster is up with the security that `flitcast up` fixed; omit --credentials and --insecure, or take it down"
    )]
    KeptOtherwise,
}

/// Security of a launch cannot be set up.
#[derive(Debug, Error)]
pub enum GuardError {
    /// The system provides no random numbers.
    #[error("cannot draw a secret: {0}")]
    Random(#[from] io::Error),
    /// A certificate cannot be created.
    #[error("cannot make a certificate: {0}")]
    Issue(#[from] rcgen::Error),
    /// The coordinator's certificate is invalid.
    #[error(transparent)]
    Credentials(#[from] SecurityError),
}

/// The security of one launch.
pub struct Guarded {
    /// Id of the cluster.
    pub cluster: u64,
    /// Secret that the processes of the launch share.
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
    pub fn new(guard: &Guard) -> Result<Guarded, GuardError> {
        let mut ephemeral = None;
        let security = match guard {
            Guard::Secret | Guard::Insecure => Security::Plain,
            Guard::Credentials(folder) => Security::Tls(Identity::load(folder, Name::Coordinator)?),
            Guard::MadeForTheRun => {
                let made = ephemeral.insert(Ephemeral::new()?);
                let own = made.credentials(Name::Coordinator)?;
                Security::Tls(Identity::issued(&own, Name::Coordinator)?)
            }
        };
        Ok(Guarded {
            cluster: random_id()?,
            secret: Secret::new(drawn()?),
            security,
            ephemeral,
        })
    }

    /// Returns the admission of a PE's process.
    ///
    /// # Errors
    ///
    /// Returns an error if the PE's certificate cannot be created.
    pub fn admission(&self, pe: PeId) -> Result<Admission, GuardError> {
        let made = self.ephemeral.as_ref();
        Ok(Admission {
            cluster: self.cluster,
            secret: self.secret,
            credentials: made
                .map(|made| made.credentials(Name::Pe(pe)))
                .transpose()?,
        })
    }
}

/// Draws a random cluster id.
///
/// # Errors
///
/// Returns an error if the system provides no random numbers.
pub fn random_id() -> io::Result<u64> {
    Ok(u64::from_ne_bytes(drawn()?))
}
