//! Who may make or remove the folder of a cluster. Two commands may be about to at the same
//! moment: one that brings a cluster up claims its folder until the cluster is up or the
//! folder gone again, and folders are made and removed by one process at a time.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use flitcast_node::system::lock::{Lock, try_lock};

use super::{Kept, KeptError, at, is_kept, taken};
use crate::files::runtime_dir::runtime_dir;

/// What a claim locks in the folder; in it stands who claims.
const CLAIM: &str = "claim";
/// For another process to make or remove a folder of a few small files.
const OTHERS: Duration = Duration::from_secs(10);
/// Between two looks whether it has.
const LOOK: Duration = Duration::from_millis(1);

/// A new folder for a cluster, which nobody else touches; it goes with this, unless the
/// cluster is up.
#[derive(Debug)]
pub struct Claim {
    folder: PathBuf,
    is_up: bool,
    lock: File,
}

/// What becomes of one who wants to bring a cluster up.
#[derive(Debug)]
pub enum Claimed {
    /// It may.
    Here(Claim),
    /// The cluster is up already.
    Up(Kept),
    /// Another process is bringing it up.
    Elsewhere {
        /// Which.
        process: String,
    },
}

/// Claims a folder, and makes it anew.
///
/// # Errors
///
/// It cannot be made, or what is known of a cluster that is up cannot be read.
pub fn claim(folder: PathBuf) -> Result<Claimed, KeptError> {
    let _alone = alone()?;
    if is_claimed(&folder)? {
        let process = fs::read_to_string(folder.join(CLAIM)).unwrap_or_default();
        let process = process.trim().to_owned();
        return Ok(Claimed::Elsewhere { process });
    }
    if let Some(kept) = Kept::read(folder.clone())? {
        return Ok(Claimed::Up(kept));
    }
    // Of a keeper that was killed, and could not tidy up.
    let _ = fs::remove_dir_all(&folder);
    match made(&folder) {
        Ok(lock) => Ok(Claimed::Here(Claim {
            folder,
            is_up: false,
            lock,
        })),
        Err(error) => {
            let _ = gone(&folder);
            Err(error)
        }
    }
}

/// Makes a folder, and the claim in it, which stays locked.
fn made(folder: &Path) -> Result<File, KeptError> {
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
    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Leaves the folder to the keeper.
    pub fn leave_to_keeper(mut self) {
        self.is_up = true;
    }

    /// Removes the folder, if it is this one's: its keeper, which has been told to end, may
    /// have done so, and another command be bringing the cluster up by now.
    fn give_up(&self) -> Result<(), KeptError> {
        let _alone = alone()?;
        let own = self.lock.metadata().map_err(at(&self.folder))?;
        match fs::metadata(self.folder.join(CLAIM)) {
            Ok(there) if (there.dev(), there.ino()) == (own.dev(), own.ino()) => gone(&self.folder),
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

/// Removes the folder of a cluster, for its keeper.
///
/// # Errors
///
/// It cannot be removed.
pub fn remove(folder: &Path) -> Result<(), KeptError> {
    let _alone = alone()?;
    gone(folder)
}

/// Removes a folder that nobody has, if it is one.
///
/// # Errors
///
/// It cannot be removed.
pub fn remove_forsaken(folder: &Path) -> Result<(), KeptError> {
    let _alone = alone()?;
    match is_claimed(folder)? || is_kept(folder).map_err(at(folder))? {
        true => Ok(()),
        false => gone(folder),
    }
}

fn gone(folder: &Path) -> Result<(), KeptError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(at(folder)),
    }
}

fn is_claimed(folder: &Path) -> Result<bool, KeptError> {
    let path = folder.join(CLAIM);
    match path.exists() {
        true => {
            let free = taken(&path, Lock::Exclusive);
            Ok(free.map_err(at(&path))?.is_none())
        }
        false => Ok(false),
    }
}

/// Waits until no other process of this user makes or removes a folder; none does as long as
/// this is held.
fn alone() -> Result<File, KeptError> {
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
