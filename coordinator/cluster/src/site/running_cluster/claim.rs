//! Exclusive creation and removal of the folders of running clusters. A command that starts a
//! cluster claims its folder until the cluster is up or the folder is removed, and only one process
//! at a time creates or removes folders.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flitcast_node::system::lock::{Lock, try_lock};

use super::running::RunningCluster;
use super::state::{is_kept, taken};
use crate::files::runtime_dir::runtime_dir;
use crate::text::phrases::at;

/// Lock file of a claim in the folder; it contains the id of the claiming process.
const CLAIM: &str = "claim";
/// Time for another process to create or remove a folder of a few small files.
const OTHERS: Duration = Duration::from_secs(10);
/// Time between two attempts to lock.
const LOOK: Duration = Duration::from_millis(1);

/// A new folder for a cluster that no other process touches. Dropping it removes the folder, unless
/// the cluster is up.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    is_up: bool,
    lock: File,
}

/// The result of a claim.
#[derive(Debug)]
pub enum Claimed {
    Here(Claim),
    Up(RunningCluster),
    /// Another process is starting the cluster.
    Elsewhere {
        /// Id of that process.
        process: String,
    },
}

/// Claims a folder and creates it.
///
/// # Errors
///
/// Returns an error if the folder cannot be created, or if the state of a running cluster cannot be
/// read.
pub fn claim(folder: PathBuf) -> anyhow::Result<Claimed> {
    let _alone = alone()?;
    if is_claimed(&folder)? {
        let process = fs::read_to_string(folder.join(CLAIM)).unwrap_or_default();
        let process = process.trim().to_owned();
        return Ok(Claimed::Elsewhere { process });
    }
    if let Some(kept) = RunningCluster::read(folder.clone())? {
        return Ok(Claimed::Up(kept));
    }
    // A daemon that was killed may have left it.
    let _ = fs::remove_dir_all(&folder);
    match made(&folder) {
        Ok(lock) => Ok(Claimed::Here(Claim {
            folder,
            is_up: false,
            lock,
        })),
        Err(error) => {
            let _ = remove_folder(&folder);
            Err(error)
        }
    }
}

/// Creates a folder with a claim that stays locked.
fn made(folder: &Path) -> anyhow::Result<File> {
    let made = DirBuilder::new().mode(0o700).create(folder);
    made.map_err(at(folder))?;
    let path = folder.join(CLAIM);
    let lock = taken(&path, Lock::Exclusive).map_err(at(&path))?;
    let busy = || io::Error::from(io::ErrorKind::WouldBlock);
    let mut lock = lock.ok_or_else(busy).map_err(at(&path))?;
    write!(lock, "{}", std::process::id()).map_err(at(&path))?;
    Ok(lock)
}

impl Claim {
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Hands the folder over to the daemon.
    pub fn leave_to_keeper(mut self) {
        self.is_up = true;
    }

    /// Removes the folder if it still belongs to this claim. Its daemon may have removed it, and
    /// another command may have claimed it again.
    fn give_up(&self) -> anyhow::Result<()> {
        let _alone = alone()?;
        let own = self.lock.metadata().map_err(at(&self.folder))?;
        match fs::metadata(self.folder.join(CLAIM)) {
            Ok(there) if (there.dev(), there.ino()) == (own.dev(), own.ino()) => {
                remove_folder(&self.folder)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.is_up
            && let Err(error) = self.give_up()
        {
            tracing::warn!(%error, "what is known of the cluster is left");
        }
    }
}

/// Removes the folder of a cluster, for its daemon.
pub fn remove(folder: &Path) -> anyhow::Result<()> {
    let _alone = alone()?;
    remove_folder(folder)
}

/// Removes a folder, if it exists and is neither claimed nor used by a daemon.
pub fn remove_forsaken(folder: &Path) -> anyhow::Result<()> {
    let _alone = alone()?;
    match is_claimed(folder)? || is_kept(folder).map_err(at(folder))? {
        true => Ok(()),
        false => remove_folder(folder),
    }
}

fn remove_folder(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(at(folder)),
    }
}

fn is_claimed(folder: &Path) -> anyhow::Result<bool> {
    let path = folder.join(CLAIM);
    match path.exists() {
        true => {
            let free = taken(&path, Lock::Exclusive);
            Ok(free.map_err(at(&path))?.is_none())
        }
        false => Ok(false),
    }
}

/// Waits until no other process of this user creates or removes a folder, and prevents that until
/// the result is dropped.
fn alone() -> anyhow::Result<File> {
    let dir = runtime_dir()?;
    let lock = File::open(&dir).map_err(at(&dir))?;
    let deadline = Instant::now() + OTHERS;
    loop {
        match try_lock(&lock, Lock::Exclusive) {
            Ok(()) => return Ok(lock),
            Err(error)
                if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < deadline =>
            {
                std::thread::sleep(LOOK);
            }
            Err(error) => return Err(at(&dir)(error)),
        }
    }
}
