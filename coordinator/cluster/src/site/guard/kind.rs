//! The kinds of security of a cluster's connections.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "guard", content = "credentials", rename_all = "lowercase")]
pub enum Guard {
    /// All connections are on loopback: a secret is drawn for the launch.
    #[serde(skip)]
    Secret,
    /// Certificates are created for the launch.
    #[serde(skip)]
    MadeForTheRun,
    /// Certificates of `flitcast ca` in this folder.
    Credentials(PathBuf),
    Insecure,
}

impl Guard {
    /// Returns whether both are the same, even if a folder is named by different paths.
    pub fn is(&self, other: &Guard) -> bool {
        match (self, other) {
            (Guard::Credentials(one), Guard::Credentials(other)) if one != other => {
                let canonical = |folder: &Path| folder.canonicalize().ok();
                canonical(one).is_some() && canonical(one) == canonical(other)
            }
            (one, other) => one == other,
        }
    }

    /// Returns the machine-readable name.
    pub fn name(&self) -> &'static str {
        match self {
            Guard::Secret => "loopback",
            Guard::MadeForTheRun | Guard::Credentials(_) => "tls",
            Guard::Insecure => "insecure",
        }
    }

    pub fn is_encrypted(&self) -> bool {
        matches!(self, Guard::MadeForTheRun | Guard::Credentials(_))
    }

    /// Returns the human-readable description, if it is worth reporting.
    pub fn description(&self) -> Option<String> {
        let tls = "TLS 1.3 both ways, certificates";
        let insecure = "INSECURE: sent in the clear, and nobody had to show who they are";
        match self {
            Guard::Secret => None,
            Guard::MadeForTheRun => Some(format!("{tls} made for this run")),
            Guard::Credentials(folder) => Some(format!("{tls} in {}", folder.display())),
            Guard::Insecure => Some(insecure.to_owned()),
        }
    }

    /// Returns the folder with the certificates of the PEs.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Guard::Credentials(folder) => Some(folder),
            _ => None,
        }
    }
}
