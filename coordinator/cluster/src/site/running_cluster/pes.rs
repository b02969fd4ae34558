//! The processes of a running cluster: `pes.json`, written by the daemon and read by commands.

use std::path::Path;
use std::time::SystemTime;

use flitcast_proto::PeId;
use serde::{Deserialize, Serialize};

use super::state::{self, PeNumber, since};

const FILE: &str = "pes.json";

/// The process of one PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPe {
    /// PE of the process.
    #[serde(with = "PeNumber")]
    pub pe: PeId,
    /// Process id, while the process runs.
    pub process: Option<u32>,
    /// Time of the last start or end.
    #[serde(rename = "since_s", with = "since")]
    pub since: SystemTime,
    /// Number of starts.
    pub starts: u32,
    /// Number of ends, including failed starts.
    pub ends: u32,
    /// Description of the last end, with the last line of output.
    pub end: Option<String>,
}

/// All processes of a running cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pes {
    /// Process id of the daemon.
    pub keeper: u32,
    /// The PEs in order of their numbers.
    pub pes: Vec<KeptPe>,
}

impl Pes {
    /// Writes the file as a whole or not at all.
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        state::write(&folder.join(FILE), self)
    }

    /// Reads the file; returns `None` if the daemon has not written it yet.
    pub fn read(folder: &Path) -> anyhow::Result<Option<Pes>> {
        let path = folder.join(FILE);
        path.exists().then(|| state::read(&path)).transpose()
    }
}
