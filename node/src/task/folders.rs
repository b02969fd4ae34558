//! A PE's part of a working folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flitcast_proto::PeId;
use walkdir::WalkDir;

use super::listing::Listing;
use super::lock::locked;
use super::{TaskError, WORK_PREFIX, remove};
use crate::payload::{Content, destination, is_hidden_beside};

/// Where a PE finds its shard, and where it puts what a command has written.
#[derive(Clone, Debug)]
pub struct Folders {
    work: PathBuf,
    pe: PeId,
    /// The shard: a folder, or a file.
    pub shard: PathBuf,
    /// What the command says.
    pub stdout: PathBuf,
    /// What it says on stderr.
    pub stderr: PathBuf,
    /// All that is neither shard nor result. Who holds the lock in it is at work here.
    pub task: PathBuf,
}

/// What a command is about to find.
#[derive(Debug)]
pub struct Ready {
    /// Whether the shard is a single file.
    pub is_file: bool,
    before: Listing,
}

impl Folders {
    /// Of a working folder of `flitcast map`.
    pub fn of(work: &Path, pe: PeId) -> Result<Folders, TaskError> {
        let name = work.file_name().map(|name| name.as_encoded_bytes());
        if !name.is_some_and(|name| name.starts_with(WORK_PREFIX.as_bytes())) {
            return Err(TaskError::NotOurs(work.to_owned()));
        }
        let task = destination(&work.join("tasks"), pe);
        Ok(Folders {
            shard: destination(&work.join("in"), pe),
            stdout: task.join("stdout"),
            stderr: task.join("stderr"),
            work: work.to_owned(),
            pe,
            task,
        })
    }

    /// The command's current directory: the shard, or an empty folder beside one that is a
    /// file.
    pub fn directory(&self, is_file: bool) -> PathBuf {
        match is_file {
            true => self.task.join("directory"),
            false => self.shard.clone(),
        }
    }

    fn result(&self) -> PathBuf {
        self.task.join("result")
    }

    fn published(&self) -> PathBuf {
        destination(&self.work.join("out"), self.pe)
    }

    /// Makes everything as a command is to find it, whatever an earlier one has left.
    pub fn prepare(&self) -> Result<Ready, TaskError> {
        let found = match fs::symlink_metadata(&self.shard) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(TaskError::NoShard(self.shard.clone()));
            }
            Err(error) => return Err(TaskError::io("look at", &self.shard)(error)),
        };
        fs::create_dir_all(&self.task).map_err(TaskError::io("create", &self.task))?;
        // What an earlier PE of this number has run may be ending just now.
        drop(locked(&self.task).map_err(TaskError::Told)?);
        for old in [self.result(), self.published()] {
            remove(&old)?;
        }
        let is_file = !found.is_dir();
        let directory = self.directory(is_file);
        let before = match is_file {
            true => {
                remove(&directory)?;
                fs::create_dir(&directory).map_err(TaskError::io("create", &directory))?;
                Listing::default()
            }
            false => {
                let kept = self.task.join("before");
                match Listing::kept(&kept)? {
                    Some(before) => {
                        before.remove_new(&directory)?;
                        before
                    }
                    None => {
                        let before = Listing::of(&directory)?;
                        before.keep(&kept)?;
                        before
                    }
                }
            }
        };
        Ok(Ready { is_file, before })
    }

    /// Puts what a command has written where it is gathered from; how many bytes that is.
    pub fn collect(&self, ready: &Ready) -> Result<u64, TaskError> {
        let result = self.result();
        fs::create_dir(&result).map_err(TaskError::io("create", &result))?;
        let directory = self.directory(ready.is_file);
        ready.before.move_new(&directory, &result)?;
        for (name, said, always) in [
            ("stdout", &self.stdout, true),
            ("stderr", &self.stderr, false),
        ] {
            let to = result.join(name);
            if to.symlink_metadata().is_ok() {
                return Err(TaskError::Taken(name));
            }
            let length = said
                .metadata()
                .map_err(TaskError::io("look at", said))?
                .len();
            if always || length > 0 {
                fs::rename(said, &to).map_err(TaskError::io("move", said))?;
            }
        }
        // That which cannot be sent is this PE's fault alone, and is told before it could
        // become everybody's.
        Content::Entry(result.clone()).measure()?;
        let mut bytes = 0;
        for entry in WalkDir::new(&result).into_iter().flatten() {
            let found = entry.metadata().ok().filter(|found| found.is_file());
            bytes += found.map_or(0, |found| found.len());
        }
        let out = self.work.join("out");
        fs::create_dir_all(&out).map_err(TaskError::io("create", &out))?;
        let published = self.published();
        fs::rename(&result, &published).map_err(TaskError::io("move", &result))?;
        Ok(bytes)
    }

    /// Removes all of it, and the folders above that are empty then.
    pub fn clear(&self) -> Result<(), TaskError> {
        if self.task.is_dir() {
            drop(locked(&self.task).map_err(TaskError::Told)?);
        }
        for part in [&self.shard, &self.task, &self.published()] {
            remove(part)?;
        }
        // What a PE that was killed has left half written, and its receipts.
        let input = self.work.join("in");
        for entry in fs::read_dir(&input).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if is_hidden_beside(&name, self.pe) {
                remove(&entry.path())?;
            }
        }
        for folder in ["in", "tasks", "out", ""] {
            // Others may have their parts there, and it may be gone already.
            let _ = fs::remove_dir(self.work.join(folder));
        }
        Ok(())
    }
}
