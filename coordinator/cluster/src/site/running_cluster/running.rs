//! A running cluster, found by its file, for the commands that use it.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::bail;
use flitcast_node::system::lock::Lock;
use thiserror::Error;

use super::state::{ClusterRecord, Pes, RECORD_FILE, digest, is_kept, taken};
use crate::files::runtime_dir::runtime_dir;
use crate::options::tree::{SpanningArg, TreeArgs};
use crate::site::placement::{self, Launch, Placement};
use crate::system::process::{Process, Signal};
use crate::text::phrases::at;

/// Time for a running PE to join a command. The PE is notified and also tries twice a second; a PE
/// that has just died is restarted within this time.
pub const JOIN: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct RunningCluster {
    /// Folder with its state.
    pub folder: PathBuf,
    /// Settings that were fixed when it was started.
    pub record: ClusterRecord,
}

/// Exclusive use of a running cluster by a command, until dropped.
#[derive(Debug)]
pub struct ClusterLock(#[expect(dead_code, reason = "its end is what matters")] File);

/// Another command uses a running cluster.
#[derive(Debug, Error)]
#[error("{name} is in use: {holder}")]
pub struct InUse {
    name: String,
    /// Command that uses it.
    pub holder: String,
}

/// Reserves the running cluster of a file, if there is one, for a command; `what` describes the
/// command.
///
/// # Errors
///
/// Returns an error if another command uses the cluster.
pub fn take(file: &Path, what: &str) -> anyhow::Result<Option<ClusterLock>> {
    match find(file)? {
        Some(kept) => kept.take(what).map(Some),
        None => Ok(None),
    }
}

/// The running cluster that was started with this file, if there is one.
pub fn find(file: &Path) -> anyhow::Result<Option<RunningCluster>> {
    // A file that was removed may still have a running cluster.
    let file = file.canonicalize().or_else(|_| std::path::absolute(file));
    let Ok(file) = file else {
        return Ok(None);
    };
    let folder = match folder_of(&file) {
        Ok(folder) => folder,
        Err(error) => {
            tracing::debug!(%error, "no cluster of this user can be up");
            return Ok(None);
        }
    };
    RunningCluster::read(folder)
}

/// Returns all running clusters, sorted by their files.
pub fn all() -> anyhow::Result<Vec<RunningCluster>> {
    let dir = runtime_dir()?;
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&dir).map_err(at(&dir))? {
        let folder = entry.map_err(at(&dir))?.path();
        let name = folder.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(FOLDER.as_bytes()) {
            all.extend(RunningCluster::read(folder)?);
        }
    }
    all.sort_by(|a, b| a.record.file.cmp(&b.record.file));
    Ok(all)
}

/// Signal to the daemon that a command listens for the PEs. Its default action is to be ignored, so
/// it does not harm a daemon of an older version.
pub const CALL: Signal = Signal::URG;

/// Notifies the PEs of a cluster that a command listens. PEs that miss the notification
/// join a little later.
pub fn call(folder: &Path) {
    if let Ok(Some(pes)) = Pes::read(folder)
        && let Some(keeper) = Process::numbered(pes.keeper)
    {
        keeper.signal(CALL);
    }
}

/// Prefix of the folders' names; a hash of the cluster file's path follows.
const FOLDER: &str = "up-";

/// Returns the folder for a cluster file, by its canonical path.
pub fn folder_of(file: &Path) -> anyhow::Result<PathBuf> {
    let path = twox_hash::XxHash3_128::oneshot(file.as_os_str().as_encoded_bytes());
    Ok(runtime_dir()?.join(format!("{FOLDER}{path:032x}")))
}

impl RunningCluster {
    /// Reads the state of a cluster; returns `None` if no daemon runs it.
    pub fn read(folder: PathBuf) -> anyhow::Result<Option<RunningCluster>> {
        if !folder.join(RECORD_FILE).is_file() || !is_kept(&folder).map_err(at(&folder))? {
            return Ok(None);
        }
        let record = ClusterRecord::read(&folder)?;
        Ok(Some(RunningCluster { folder, record }))
    }

    /// Returns the arguments with which the cluster was started, if the typed ones and the file are the same.
    pub fn arguments(&self, typed: &TreeArgs) -> anyhow::Result<TreeArgs> {
        if digest(&self.record.file)? != self.record.digest {
            let file = self.record.file.display();
            bail!(
                "{file} has changed since `flitcast up`: take the cluster down (flitcast down {file}) and up again"
            );
        }
        let advice = "its PEs are numbered by that: leave it out, or take the cluster down";
        let root = self.record.root.clone();
        let spanning = self.record.spanning;
        if typed.root.is_some() && typed.root != root {
            let up = root.unwrap_or("0".to_owned());
            bail!("--root: this cluster is up with --root {up}, and {advice}");
        }
        if typed.spanning.is_some_and(|typed| Some(typed) != spanning) {
            let up = spanning.unwrap_or(SpanningArg::Bfs);
            bail!("--spanning: this cluster is up with --spanning {up}, and {advice}");
        }
        Ok(TreeArgs {
            root,
            spanning,
            ..typed.clone()
        })
    }

    /// Makes the PEs join within `wait`, instead of the launch in the file.
    pub fn adopt(&self, placement: &mut Placement, wait: Duration) {
        let started = match placement.kept.take() {
            Some(kept) => kept.started,
            None => Box::new(placement.clone()),
        };
        placement.coordinator = self.record.coordinator.ip();
        placement.launch = Launch::Join {
            port: self.record.coordinator.port(),
            wait,
            starter: None,
        };
        placement.kept = Some(placement::KeptPlaces {
            folder: self.folder.clone(),
            guard: self.record.guard.clone(),
            started,
        });
    }

    /// Reserves the cluster for a command; `what` describes the command.
    pub fn take(&self, what: &str) -> anyhow::Result<ClusterLock> {
        let path = self.folder.join("use");
        let Some(mut file) = taken(&path, Lock::Exclusive).map_err(at(&path))? else {
            let holder = std::fs::read_to_string(&path).unwrap_or_default();
            bail!(InUse {
                name: self.record.name.clone(),
                holder: holder.trim().to_owned(),
            });
        };
        let holder = format!("{what}, process {}\n", std::process::id());
        file.set_len(0).map_err(at(&path))?;
        file.write_all(holder.as_bytes()).map_err(at(&path))?;
        Ok(ClusterLock(file))
    }
}
