//! How the connections of a cluster are guarded: what is chosen for it, and what each of
//! its processes is told so that it is one of them.

use std::io;
use std::path::{Path, PathBuf};

use flitcast_node::security::{Identity, Name, Security, SecurityError};
use flitcast_proto::PeId;
use flitcast_proto::wire::Secret;
use flitcast_proto::wire::admission::Admission;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::options::guard::GuardArgs;
use crate::site::authority::Ephemeral;
use crate::site::placement::Placement;
use crate::site::settings::Settings;
use crate::system::random::drawn;

/// How the connections of a cluster are guarded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "guard", content = "credentials", rename_all = "lowercase")]
pub enum Guard {
    /// All on loopback: by a secret that is drawn for the launch.
    #[serde(skip)]
    Secret,
    /// By certificates that are made for the launch.
    #[serde(skip)]
    MadeForTheRun,
    /// By certificates that `flitcast ca` has made, in this folder.
    Credentials(PathBuf),
    /// Not at all.
    Insecure,
}

impl GuardArgs {
    /// What was typed, or else what a cluster file says.
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
    /// What was asked for, or what the PEs are kept by, or what the addresses ask for.
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

    /// Whether it could be used as it stands: the coordinator's part of it.
    ///
    /// # Errors
    ///
    /// The folder lacks something, or what it has is not good; or anybody could join, and
    /// nobody has said that this is meant.
    pub fn check(&self, placement: &Placement) -> Result<(), GuardFault> {
        if placement
            .kept
            .as_ref()
            .is_some_and(|kept| !kept.guard.is(self))
        {
            return Err(GuardFault::KeptOtherwise);
        }
        match self {
            Guard::Credentials(folder) => {
                Identity::load(folder, Name::Coordinator)?;
                Ok(())
            }
            // Who joins knows no secret and has no certificate of this launch, on loopback
            // no more than elsewhere.
            Guard::Secret | Guard::MadeForTheRun if placement.is_joined() => {
                Err(GuardFault::Unguarded)
            }
            _ => Ok(()),
        }
    }

    /// Whether PEs that are guarded so read and write files, and run commands.
    ///
    /// # Errors
    ///
    /// They do not know whose word that would be.
    pub fn check_files(&self, placement: &Placement) -> Result<(), GuardFault> {
        match (self, &placement.kept) {
            (Guard::Insecure, Some(_)) => Err(GuardFault::KeptForAnybody),
            (Guard::Insecure, None) if placement.is_joined() => Err(GuardFault::JoinedAnybody),
            _ => Ok(()),
        }
    }

    /// Whether it is the same, however the folder is called.
    fn is(&self, other: &Guard) -> bool {
        match (self, other) {
            (Guard::Credentials(one), Guard::Credentials(other)) => {
                one == other
                    || one
                        .canonicalize()
                        .is_ok_and(|one| Some(one) == other.canonicalize().ok())
            }
            (one, other) => one == other,
        }
    }

    /// For programs.
    pub fn name(&self) -> &'static str {
        match self {
            Guard::Secret => "loopback",
            Guard::MadeForTheRun | Guard::Credentials(_) => "tls",
            Guard::Insecure => "insecure",
        }
    }

    /// Whether what is sent is encrypted.
    pub fn is_encrypted(&self) -> bool {
        matches!(self, Guard::MadeForTheRun | Guard::Credentials(_))
    }

    /// For people, where there is something to say.
    pub fn told(&self) -> Option<String> {
        match self {
            Guard::Secret => None,
            Guard::MadeForTheRun => {
                Some("TLS 1.3 both ways, certificates made for this run".to_owned())
            }
            Guard::Credentials(folder) => Some(format!(
                "TLS 1.3 both ways, certificates in {}",
                folder.display()
            )),
            Guard::Insecure => {
                Some("INSECURE: sent in the clear, and nobody had to show who they are".to_owned())
            }
        }
    }

    /// The folder that PEs find their certificates in.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Guard::Credentials(folder) => Some(folder),
            _ => None,
        }
    }
}

/// A guard is none.
#[derive(Debug, Error)]
pub enum GuardFault {
    /// The coordinator's own certificate is not good.
    #[error("--credentials: {0}")]
    Credentials(#[from] SecurityError),
    /// Who joins shows nothing.
    #[error(
        "processes that join must show who they are: --credentials DIR (`flitcast ca init` makes one), or else --insecure, for anybody to be let in"
    )]
    Unguarded,
    /// PEs have joined whoever listens.
    #[error(
        "PEs that join with --insecure play synthetic messages only, since they do not know at whose word they would read and write files, or run commands: give both ends --credentials DIR (`flitcast ca init` makes one)"
    )]
    JoinedAnybody,
    /// Those that are kept do so all the time.
    #[error(
        "PEs that are kept with --insecure play synthetic messages only, since they do not know at whose word they would read and write files, or run commands: leave out --insecure, and take the cluster down and up again"
    )]
    KeptForAnybody,
    /// Commands would be sent in the clear.
    #[error(
        "with --insecure, anybody on the way could run commands on the hosts of the PEs: leave it out, and certificates are made for the run"
    )]
    PlainCommands,
    /// It is typed what `flitcast up` has settled.
    #[error(
        "this cluster is up, and guarded as `flitcast up` was told: leave out --credentials and --insecure, or take it down"
    )]
    KeptOtherwise,
}

/// A launch cannot be guarded.
#[derive(Debug, Error)]
pub enum GuardError {
    /// The system gives no random numbers.
    #[error("cannot draw a secret: {0}")]
    Random(#[from] io::Error),
    /// No certificate can be made.
    #[error("cannot make a certificate: {0}")]
    Issue(#[from] rcgen::Error),
    /// The coordinator's own certificate is not good.
    #[error(transparent)]
    Credentials(#[from] SecurityError),
}

/// What guards one launch.
pub struct Guarded {
    /// Names the cluster.
    pub cluster: u64,
    /// What the processes of the launch know.
    pub secret: Secret,
    /// The coordinator's end of all connections.
    pub security: Security,
    ephemeral: Option<Ephemeral>,
}

impl Guarded {
    /// Draws a secret, and makes or loads certificates.
    ///
    /// # Errors
    ///
    /// It cannot be done.
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

    /// What the process that plays a PE is told.
    ///
    /// # Errors
    ///
    /// No certificate can be made for it.
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

/// A name that no other cluster has.
///
/// # Errors
///
/// The system gives no random numbers.
pub fn random_id() -> io::Result<u64> {
    Ok(u64::from_ne_bytes(drawn()?))
}
