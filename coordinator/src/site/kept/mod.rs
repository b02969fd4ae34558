//! Clusters that `flitcast up` keeps: a keeper starts their PEs, starts them again when they
//! end, and stops them; each command that works on such a cluster has them join it, as those
//! that others start do. So nothing but processes lives between two commands, and a command
//! that dies leaves nothing behind.
//!
//! What is known of such a cluster is in a folder of its user's own, and goes with it:
//!
//! ```text
//! cluster.json   written once: the file, where commands listen, how connections are guarded
//! pes.json       written by the keeper when something has changed: processes, starts, ends
//! rounds.jsonl   a line for each command that has ended
//! credentials/   certificates that were made for it, if any were
//! claim          held by `flitcast up` until the cluster is up
//! lock           held by the keeper as long as it lives
//! use            held by the command that uses it
//! log            what the PEs and the keeper say
//! ```

pub mod claim;
pub mod pes;
pub mod rounds;
pub mod said;
mod state;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flitcast_node::system::lock::{Lock, try_lock};
use thiserror::Error;

pub use pes::Pes;
pub use rounds::{Round, note};
pub use said::Said;

use crate::files::runtime_dir::{RuntimeDirError, runtime_dir};
use crate::options::tree::{SpanningArg, TreeArgs};
use crate::site::placement::{self, Launch, Placement};
use crate::system::process::{Process, Signal};

/// For a kept PE to join a command: it is told when to, and asks twice a second besides; and one
/// that has just died is started again within this.
pub const JOIN: Duration = Duration::from_secs(10);

/// A cluster that is up.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Where that is known of it.
    pub folder: PathBuf,
    /// What was settled when it was brought up.
    pub said: Said,
}

/// What is wrong with a cluster that is up, or should be.
#[derive(Debug, Error)]
pub enum KeptError {
    /// There is no place for what is known of it.
    #[error(transparent)]
    RuntimeDir(#[from] RuntimeDirError),
    /// A file of ours cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not what `flitcast up` has written.
    #[error("{}: {why}; `flitcast down` takes it away", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The file is another one by now.
    #[error(
        "{} has changed since `flitcast up`: take the cluster down (flitcast down {}) and up again",
        .0.display(),
        .0.display()
    )]
    Changed(PathBuf),
    /// Another command is using it.
    #[error("{name} is in use: {holder}")]
    InUse {
        /// The cluster.
        name: String,
        /// What uses it.
        holder: String,
    },
    /// Another root than its PEs are numbered from.
    #[error(
        "{option}: this cluster is up with {option} {up}, and its PEs are numbered by that: leave it out, or take the cluster down"
    )]
    Otherwise {
        /// Which option.
        option: &'static str,
        /// What it was up with.
        up: String,
    },
}

/// A command's right to use a cluster, as long as it lives.
#[derive(Debug)]
pub struct Use(#[expect(dead_code, reason = "its end is what matters")] File);

/// Takes a cluster that is up for a command that does `what` on it.
///
/// # Errors
///
/// Another one has it.
pub fn take(file: &Path, what: &str) -> Result<Option<Use>, KeptError> {
    match find(file)? {
        Some(kept) => kept.take(what).map(Some),
        None => Ok(None),
    }
}

/// An error with the path that it came from.
pub fn at(path: &Path) -> impl FnOnce(io::Error) -> KeptError {
    let path = path.to_owned();
    move |source| KeptError::Io { path, source }
}

/// The cluster of this file, if it is up.
///
/// # Errors
///
/// What is known of it cannot be read.
pub fn find(file: &Path) -> Result<Option<Kept>, KeptError> {
    // A file that is gone may still have a cluster.
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
    Kept::read(folder)
}

/// All that are up, by the names of their files.
///
/// # Errors
///
/// What is known of one cannot be read.
pub fn all() -> Result<Vec<Kept>, KeptError> {
    let dir = runtime_dir()?;
    let mut all = Vec::new();
    for entry in std::fs::read_dir(&dir).map_err(at(&dir))? {
        let folder = entry.map_err(at(&dir))?.path();
        let name = folder.file_name().unwrap_or_default();
        if name.as_encoded_bytes().starts_with(FOLDER.as_bytes()) {
            all.extend(Kept::read(folder)?);
        }
    }
    all.sort_by(|a, b| a.said.file.cmp(&b.said.file));
    Ok(all)
}

/// What has a keeper tell its PEs that somebody listens. By default it does nothing, so it does no
/// harm to a keeper that is older than this.
pub const CALL: Signal = Signal::URG;

/// Has the PEs of a cluster join at once. If they cannot be told, they come a little later, by
/// themselves.
pub fn call(folder: &Path) {
    if let Ok(Some(pes)) = Pes::read(folder)
        && let Some(keeper) = Process::numbered(pes.keeper)
    {
        keeper.signal(CALL);
    }
}

/// What a keeper locks.
const LOCK: &str = "lock";

/// How the folders' names begin, ahead of what stands for the cluster file's path.
const FOLDER: &str = "up-";

/// The folder of the cluster of a file, by its canonical path.
pub fn folder_of(file: &Path) -> Result<PathBuf, RuntimeDirError> {
    let path = xxhash_rust::xxh3::xxh3_128(file.as_os_str().as_encoded_bytes());
    Ok(runtime_dir()?.join(format!("{FOLDER}{path:032x}")))
}

/// Whether a keeper lives that has its lock there.
pub fn is_kept(folder: &Path) -> io::Result<bool> {
    // Shared: who only looks is in nobody's way but a keeper's that begins.
    match taken(&folder.join(LOCK), Lock::Shared) {
        Ok(taken) => Ok(taken.is_none()),
        // It is being taken away.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes the lock of a keeper; `None` while a keeper has it.
pub fn lock(folder: &Path) -> io::Result<Option<File>> {
    taken(&folder.join(LOCK), Lock::Exclusive)
}

/// Takes a lock, if nobody has one against it.
fn taken(path: &Path, lock: Lock) -> io::Result<Option<File>> {
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

impl Kept {
    /// What a folder says of a cluster that a keeper keeps.
    fn read(folder: PathBuf) -> Result<Option<Kept>, KeptError> {
        if !folder.join(said::FILE).is_file() || !is_kept(&folder).map_err(at(&folder))? {
            return Ok(None);
        }
        let said = Said::read(&folder)?;
        Ok(Some(Kept { folder, said }))
    }

    /// The arguments with which it was brought up, where nothing else was typed.
    ///
    /// # Errors
    ///
    /// Something else was typed, or the file has changed.
    pub fn arguments(&self, typed: &TreeArgs) -> Result<TreeArgs, KeptError> {
        if said::digest(&self.said.file)? != self.said.digest {
            return Err(KeptError::Changed(self.said.file.clone()));
        }
        let otherwise = |option, up| Err(KeptError::Otherwise { option, up });
        let root = self.said.root.clone();
        let spanning = self.said.spanning;
        if typed.root.is_some() && typed.root != root {
            return otherwise("--root", root.unwrap_or("0".to_owned()));
        }
        if typed.spanning.is_some_and(|typed| Some(typed) != spanning) {
            let up = spanning.unwrap_or(SpanningArg::Bfs);
            return otherwise("--spanning", up.to_string());
        }
        Ok(TreeArgs {
            root,
            spanning,
            ..typed.clone()
        })
    }

    /// Its PEs join within this time, wherever the file would have had them started.
    pub fn adopt(&self, placement: &mut Placement, wait: Duration) {
        let elsewhere = placement.is_elsewhere();
        placement.coordinator = self.said.coordinator.ip();
        placement.launch = Launch::Join {
            port: self.said.coordinator.port(),
            wait,
            starter: None,
        };
        placement.kept = Some(placement::KeptPlaces {
            folder: self.folder.clone(),
            guard: self.said.guard.clone(),
            elsewhere,
        });
    }

    /// Takes it for a command.
    pub fn take(&self, what: &str) -> Result<Use, KeptError> {
        let path = self.folder.join("use");
        let Some(mut file) = taken(&path, Lock::Exclusive).map_err(at(&path))? else {
            let holder = std::fs::read_to_string(&path).unwrap_or_default();
            return Err(KeptError::InUse {
                name: self.said.name.clone(),
                holder: holder.trim().to_owned(),
            });
        };
        let holder = format!("{what}, process {}\n", std::process::id());
        let written = file
            .set_len(0)
            .and_then(|()| file.write_all(holder.as_bytes()));
        written.map_err(at(&path))?;
        Ok(Use(file))
    }
}
