//! The settings that `flitcast up` fixes for a running cluster: `cluster.json`.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::state::{self, since};
use crate::options::tree::SpanningArg;
use crate::site::guard::Guard;
use crate::text::phrases::at;

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
