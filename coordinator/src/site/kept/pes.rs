//! The processes of a cluster that is up: `pes.json`, written by the keeper, read by who asks.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use flitcast_proto::PeId;
use serde_json::{Value, json};

use super::said::read_json;
use super::{KeptError, at};

const FILE: &str = "pes.json";

/// The process of one PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPe {
    /// Whom it plays.
    pub pe: PeId,
    /// Its process, while there is one.
    pub process: Option<u32>,
    /// Since when it runs, or does not.
    pub since: SystemTime,
    /// How often it was started.
    pub starts: u32,
    /// How often it has ended, or could not be started.
    pub ends: u32,
    /// How it did so last, and what it said last.
    pub end: Option<String>,
}

/// All of them, and who keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pes {
    /// The keeper's process.
    pub keeper: u32,
    /// The PEs, by their numbers.
    pub pes: Vec<KeptPe>,
}

impl Pes {
    /// Writes them, whole or not at all.
    pub fn write(&self, folder: &Path) -> Result<(), KeptError> {
        let pe = |kept: &KeptPe| {
            json!({
                "pe": kept.pe.0,
                "process": kept.process,
                "since_s": seconds(kept.since),
                "starts": kept.starts,
                "ends": kept.ends,
                "end": kept.end,
            })
        };
        let pes: Vec<Value> = self.pes.iter().map(pe).collect();
        let text = json!({ "keeper": self.keeper, "pes": pes });
        let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
            writeln!(file, "{text}")?;
            Ok(file.persist(folder.join(FILE))?)
        });
        written.map(drop).map_err(at(&folder.join(FILE)))
    }

    /// Reads them; `None` before the keeper has written any.
    pub fn read(folder: &Path) -> Result<Option<Pes>, KeptError> {
        let path = folder.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        let value = read_json(&path)?;
        let read = Pes::of(&value).ok_or_else(|| malformed(path))?;
        Ok(Some(read))
    }

    /// What a text says, if a keeper of this flitcast may have written it.
    pub fn of(value: &Value) -> Option<Pes> {
        let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
        let pe = |value: &Value| {
            Some(KeptPe {
                pe: PeId(number(&value["pe"])?),
                process: number(&value["process"]),
                since: time(value["since_s"].as_u64()?)?,
                starts: number(&value["starts"])?,
                ends: number(&value["ends"])?,
                end: value["end"].as_str().map(str::to_owned),
            })
        };
        Some(Pes {
            keeper: number(&value["keeper"])?,
            pes: value["pes"]
                .as_array()?
                .iter()
                .map(pe)
                .collect::<Option<_>>()?,
        })
    }
}

fn malformed(path: PathBuf) -> KeptError {
    KeptError::Malformed {
        path,
        why: "this flitcast's keeper has not written it".to_owned(),
    }
}

/// Since 1970.
pub fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// The time so many seconds after that; `None` of one that no clock shows, nor any text tells.
pub fn time(seconds: u64) -> Option<SystemTime> {
    /// The year 10000 begins.
    const END: u64 = 253_402_300_800;
    let since = Duration::from_secs(seconds);
    (seconds < END).then(|| SystemTime::UNIX_EPOCH + since)
}

#[cfg(test)]
mod tests {
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
        assert_eq!(time(1_800_000_000), Some(since));
        assert_eq!(time(u64::MAX), None);
        std::fs::write(dir.path().join(FILE), "[]").unwrap();
        assert!(Pes::read(dir.path()).is_err());
    }
}
