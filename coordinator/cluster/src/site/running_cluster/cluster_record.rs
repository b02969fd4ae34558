//! The settings that `flitcast up` fixes for a running cluster: `cluster.json`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::state::{self, since};
use crate::options::tree::SpanningArg;
use crate::site::guard::Guard;
use crate::text::words::at;

/// Name of the record's file in the cluster's folder.
pub const FILE: &str = "cluster.json";
/// Folder of the certificates that were created for a cluster.
pub const CREDENTIALS: &str = "credentials";

/// The fixed settings of a running cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterRecord {
    /// Name in the cluster file.
    pub name: String,
    /// Canonical path of the cluster file.
    pub file: PathBuf,
    /// Hash of the cluster file's content.
    pub digest: String,
    /// Value of `--root`, if it was typed.
    pub root: Option<String>,
    /// Kind of the spanning tree of a network.
    pub spanning: Option<SpanningArg>,
    /// Number of PEs.
    pub pes: usize,
    /// Address where commands listen for the PEs.
    pub coordinator: SocketAddr,
    /// Security of connections.
    #[serde(flatten)]
    pub guard: Guard,
    /// When the cluster was started.
    #[serde(rename = "since_s", with = "since")]
    pub since: SystemTime,
}

/// Returns a hash of a file's content.
pub fn digest(file: &Path) -> anyhow::Result<String> {
    let contents = fs::read(file).map_err(at(file))?;
    Ok(format!(
        "{:032x}",
        twox_hash::XxHash3_128::oneshot(&contents)
    ))
}

impl ClusterRecord {
    /// Writes the file.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        state::write(&folder.join(FILE), self)
    }

    /// Reads the file.
    pub fn read(folder: &Path) -> anyhow::Result<ClusterRecord> {
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
            let said = ClusterRecord {
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
            assert_eq!(ClusterRecord::read(dir.path()).unwrap(), said);
        }
        fs::write(dir.path().join(FILE), "{}").unwrap();
        let refused = ClusterRecord::read(dir.path()).unwrap_err().to_string();
        assert!(refused.contains("has not written it"), "{refused}");
    }
}
