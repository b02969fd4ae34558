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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Pes::read(dir.path()).unwrap(), None);
        let since = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let kept = |pe, process: Option<u32>, end: Option<&str>| KeptPe {
            pe: PeId(pe),
            process,
            since,
            starts: pe + 1,
            ends: pe,
            end: end.map(str::to_owned),
        };
        let pes = Pes {
            keeper: 4711,
            pes: vec![
                kept(0, Some(12), None),
                kept(1, None, Some("was \"killed\"")),
            ],
        };
        pes.write(dir.path()).unwrap();
        assert_eq!(Pes::read(dir.path()).unwrap(), Some(pes));
        for wrong in [
            "[]",
            // A time outside the range of clocks.
            r#"{"keeper": 1, "pes": [{"pe": 0, "since_s": 18446744073709551615, "starts": 1, "ends": 0}]}"#,
        ] {
            std::fs::write(dir.path().join(FILE), wrong).unwrap();
            assert!(Pes::read(dir.path()).is_err(), "{wrong}");
        }
    }
}
