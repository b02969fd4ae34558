//! JSON files and locks in the folder of a running cluster, used only by Flitcast.

use std::fs::{File, OpenOptions};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use anyhow::anyhow;
use flitcast_node::system::lock::{Lock, try_lock};
use flitcast_proto::PeId;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::options::pes::MAX_LOCAL_PES;
use crate::options::tree::SpanningArg;
use crate::site::guard::Guard;
use crate::text::phrases::at;
use crate::text::whole_file::write_whole;

/// Name of the record's file in the cluster's folder.
pub const RECORD_FILE: &str = "cluster.json";
const PES_FILE: &str = "pes.json";
/// Folder of the certificates that were created for a cluster.
pub const CREDENTIALS: &str = "credentials";

/// The settings that `flitcast up` fixes for a running cluster: `cluster.json`.
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
    let hash = twox_hash::XxHash3_128::oneshot(&contents);
    Ok(format!("{hash:032x}"))
}

impl ClusterRecord {
    pub fn write(&self, folder: &Path) -> anyhow::Result<()> {
        write(&folder.join(RECORD_FILE), self)
    }

    pub fn read(folder: &Path) -> anyhow::Result<ClusterRecord> {
        read(&folder.join(RECORD_FILE))
    }
}

/// The process of one PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptPe {
    #[serde(with = "PeNumber")]
    pub pe: PeId,
    /// Process id, while the process runs.
    pub process: Option<u32>,
    /// Time of the last start or end.
    #[serde(rename = "since_s", with = "since")]
    pub since: SystemTime,
    pub starts: u32,
    /// Number of ends, including failed starts.
    pub ends: u32,
    /// Description of the last end, with the last line of output.
    pub end: Option<String>,
}

/// All processes of a running cluster: `pes.json`, written by the daemon and read by commands.
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
        write(&folder.join(PES_FILE), self)
    }

    /// Reads the file; returns `None` if the daemon has not written it yet.
    pub fn read(folder: &Path) -> anyhow::Result<Option<Pes>> {
        let path = folder.join(PES_FILE);
        path.exists().then(|| read(&path)).transpose()
    }
}

/// Maximum bytes of a file: some hundred bytes and two paths, and a few hundred bytes for each PE.
const LONGEST: u64 = 64 * 1024 + 4096 * MAX_LOCAL_PES as u64;

/// Writes a file as a whole or not at all.
pub fn write(path: &Path, state: &impl Serialize) -> anyhow::Result<()> {
    Ok(write_whole(path, |out| {
        serde_json::to_writer_pretty(&mut *out, state)?;
        writeln!(out)
    })?)
}

/// Reads a file that [`write`] has written.
pub fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let shown = path.display();
    let malformed = |why: String| anyhow!("{shown}: {why}; `flitcast down` takes it away");
    let length = fs::metadata(path).map_err(at(path))?.len();
    if length > LONGEST {
        return Err(malformed(format!("it has {length} bytes")));
    }
    let text = fs::read(path).map_err(at(path))?;
    serde_json::from_slice(&text)
        .map_err(|error| malformed(format!("this flitcast has not written it: {error}")))
}

/// A PE, serialized as its number.
#[derive(Serialize, Deserialize)]
#[serde(remote = "PeId")]
pub struct PeNumber(pub u32);

/// Serialization of a time as seconds since 1970.
pub mod since {
    use std::time::{Duration, SystemTime};

    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// The start of the year 10000, beyond all dates that can be formatted.
    const END: u64 = 253_402_300_800;

    pub fn serialize<S: Serializer>(time: &SystemTime, serializer: S) -> Result<S::Ok, S::Error> {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        serializer.serialize_u64(since.unwrap_or_default().as_secs())
    }

    /// Deserializes a time from an integer that is not too large.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        match u64::deserialize(from)? {
            seconds if seconds < END => Ok(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
            seconds => Err(D::Error::custom(format!("{seconds} s is no time"))),
        }
    }
}

const LOCK: &str = "lock";

/// Returns whether a daemon holds its lock in the folder.
pub fn is_kept(folder: &Path) -> io::Result<bool> {
    // A shared lock conflicts only with a daemon that is starting.
    match taken(&folder.join(LOCK), Lock::Shared) {
        Ok(taken) => Ok(taken.is_none()),
        // The folder is being removed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes the lock of a daemon; returns `None` if a daemon holds it.
pub fn lock(folder: &Path) -> io::Result<Option<File>> {
    taken(&folder.join(LOCK), Lock::Exclusive)
}

/// Takes a lock; returns `None` if a conflicting lock is held.
pub fn taken(path: &Path, lock: Lock) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let file = options
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .open(path)?;
    match try_lock(&file, lock) {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
