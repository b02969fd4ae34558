//! What `flitcast up` writes of a cluster, once: `cluster.json`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::state::{self, since};
use super::{KeptError, at};
use crate::options::tree::SpanningArg;
use crate::site::guard::Guard;

pub const FILE: &str = "cluster.json";
/// The certificates that were made for a cluster.
pub const CREDENTIALS: &str = "credentials";

/// What is settled for as long as a cluster is up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// What the cluster file calls it.
    pub name: String,
    /// The cluster file, by its canonical path.
    pub file: PathBuf,
    /// What stood in it.
    pub digest: String,
    /// `--root`, if it was typed.
    pub root: Option<String>,
    /// Of a network: how the tree spans it.
    pub spanning: Option<SpanningArg>,
    /// How many PEs.
    pub pes: usize,
    /// Where commands listen for the PEs.
    pub coordinator: SocketAddr,
    /// How connections are guarded.
    #[serde(flatten)]
    pub guard: Guard,
    /// Since when it is up.
    #[serde(rename = "since_s", with = "since")]
    pub since: SystemTime,
}

/// What stands for the contents of a file.
pub fn digest(file: &Path) -> Result<String, KeptError> {
    let contents = fs::read(file).map_err(at(file))?;
    Ok(format!("{:032x}", xxhash_rust::xxh3::xxh3_128(&contents)))
}

impl Said {
    /// Writes it.
    pub fn write(&self, folder: &Path) -> Result<(), KeptError> {
        state::write(&folder.join(FILE), self)
    }

    /// Reads what was written.
    pub fn read(folder: &Path) -> Result<Said, KeptError> {
        state::read(&folder.join(FILE))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        for is_guarded in [false, true] {
            let said = Said {
                name: "three \"hosts\"".to_owned(),
                file: "/etc/cluster.toml".into(),
                digest: "00ff".to_owned(),
                root: is_guarded.then(|| "b".to_owned()),
                spanning: is_guarded.then_some(SpanningArg::Broadcast),
                pes: 3,
                coordinator: "127.0.0.1:17001".parse().unwrap(),
                guard: match is_guarded {
                    true => Guard::Credentials("/somewhere".into()),
                    false => Guard::Insecure,
                },
                since: SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
            };
            said.write(dir.path()).unwrap();
            assert_eq!(Said::read(dir.path()).unwrap(), said);
        }
        fs::write(dir.path().join(FILE), "{}").unwrap();
        let refused = Said::read(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("has not written it"), "{refused}");
    }
}
