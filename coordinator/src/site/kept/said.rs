//! What `flitcast up` writes of a cluster, once: `cluster.json`.

use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use super::pes::{seconds, time};
use super::{KeptError, at};
use crate::options::tree::SpanningArg;
use crate::site::guard::Guard;

pub const FILE: &str = "cluster.json";
/// The certificates that were made for a cluster.
pub const CREDENTIALS: &str = "credentials";
/// The longest file that is read: some hundred bytes, and two paths.
const LONGEST: u64 = 64 * 1024;

/// What is settled for as long as a cluster is up.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub guard: Guard,
    /// Since when it is up.
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
        let (guard, credentials) = match &self.guard {
            Guard::Credentials(folder) => ("credentials", folder.to_str()),
            _ => ("insecure", None),
        };
        let text = json!({
            "name": self.name,
            "file": self.file.to_str(),
            "digest": self.digest,
            "root": self.root,
            "spanning": self.spanning.map(|kind| kind.to_string()),
            "pes": self.pes,
            "coordinator": self.coordinator.to_string(),
            "guard": guard,
            "credentials": credentials,
            "since_s": seconds(self.since),
        });
        let written = tempfile::NamedTempFile::new_in(folder).and_then(|mut file| {
            writeln!(file, "{text:#}")?;
            Ok(file.persist(folder.join(FILE))?)
        });
        written.map(drop).map_err(at(&folder.join(FILE)))
    }

    /// Reads what was written.
    pub fn read(folder: &Path) -> Result<Said, KeptError> {
        let path = folder.join(FILE);
        let value = read_json(&path)?;
        Said::of(&value).ok_or_else(|| KeptError::Malformed {
            path,
            why: "this flitcast has not written it".to_owned(),
        })
    }

    /// What a text says, if this flitcast may have written it.
    pub fn of(value: &Value) -> Option<Said> {
        let text = |key: &str| Some(value[key].as_str()?.to_owned());
        let guard = match value["guard"].as_str()? {
            "credentials" => Guard::Credentials(text("credentials")?.into()),
            "insecure" => Guard::Insecure,
            _ => return None,
        };
        let spanning = match value["spanning"].as_str() {
            Some("bfs") => Some(SpanningArg::Bfs),
            Some("broadcast") => Some(SpanningArg::Broadcast),
            Some(_) => return None,
            None => None,
        };
        Some(Said {
            name: text("name")?,
            file: text("file")?.into(),
            digest: text("digest")?,
            root: text("root"),
            spanning,
            pes: usize::try_from(value["pes"].as_u64()?).ok()?,
            coordinator: value["coordinator"].as_str()?.parse().ok()?,
            guard,
            since: time(value["since_s"].as_u64()?)?,
        })
    }
}

/// Reads a JSON file of ours.
pub fn read_json(path: &Path) -> Result<Value, KeptError> {
    let length = fs::metadata(path).map_err(at(path))?.len();
    let malformed = |why: String| KeptError::Malformed {
        path: path.to_owned(),
        why,
    };
    // The PEs' file has a few hundred bytes for each.
    let longest = LONGEST + 4096 * crate::options::pes::MAX_LOCAL_PES as u64;
    if length > longest {
        return Err(malformed(format!("it has {length} bytes")));
    }
    let text = fs::read(path).map_err(at(path))?;
    serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))
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
