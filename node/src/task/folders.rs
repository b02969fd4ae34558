//! A PE's part of a working folder.

use std::path::{Path, PathBuf};
use std::{fs, io};

use flitcast_proto::PeId;
use flitcast_proto::wire::{MAX_LINE_CHARS, MAX_NOT_TAKEN};

use super::listing::Listing;
use super::lock::locked;
use super::walk::Walk;
use super::{TaskError, WORK_PREFIX, remove};
use crate::limits::UNSENDABLE_ENTRIES;
use crate::payload::{Content, HiddenName, destination};

/// The folders of a task: its shard, its result and its working files.
#[derive(Clone, Debug)]
pub struct Folders {
    work: PathBuf,
    pe: PeId,
    /// The shard: a folder, or a file.
    pub shard: PathBuf,
    /// The command's standard output.
    pub stdout: PathBuf,
    /// The command's standard error.
    pub stderr: PathBuf,
    /// All files that belong to neither the shard nor the result. The process with the lock in it runs
    /// the task.
    pub task: PathBuf,
}

/// The prepared input of a command.
#[derive(Debug)]
pub struct Ready {
    /// Whether the shard is a single file.
    pub is_file: bool,
    before: Listing,
}

/// A result that is to be gathered.
#[derive(Debug, Default)]
pub struct Collected {
    /// Bytes of its files.
    pub bytes: u64,
    /// Entries that are not in it, and why, a line each.
    pub not_taken: Vec<String>,
}

/// Entries that are not part of a result: the lines about the first ones, and the number of others.
#[derive(Default)]
struct Refused {
    first: Vec<String>,
    others: usize,
}

impl Refused {
    fn add(&mut self, line: String) {
        // The last line is for a count.
        match self.first.len() + 1 < MAX_NOT_TAKEN {
            true => self.first.push(line.chars().take(MAX_LINE_CHARS).collect()),
            false => self.others += 1,
        }
    }

    fn lines(mut self) -> Vec<String> {
        if self.others > 0 {
            self.first.push(format!("{} more", self.others));
        }
        self.first
    }

    /// Removes from a result what cannot be sent: at the gather it would fail all PEs.
    fn remove_unsendable(&mut self, result: &Path) -> Result<(), TaskError> {
        for _ in 0..UNSENDABLE_ENTRIES {
            let Err(fault) = Content::Entry(result.to_owned()).measure() else {
                return Ok(());
            };
            let below = fault
                .entry()
                .and_then(|path| path.strip_prefix(result).ok());
            let Some(below) = below.filter(|below| !below.as_os_str().is_empty()) else {
                return Err(fault.into());
            };
            remove(&result.join(below))?;
            let shown = format!("{}/", result.display());
            self.add(fault.to_string().replace(&shown, ""));
        }
        Ok(Content::Entry(result.to_owned()).measure().map(drop)?)
    }
}

impl Folders {
    /// Returns the folders of a PE below a working folder of `flitcast map`.
    pub fn of(work: &Path, pe: PeId) -> Result<Folders, TaskError> {
        let name = work.file_name().map(|name| name.as_encoded_bytes());
        if !name.is_some_and(|name| name.starts_with(WORK_PREFIX.as_bytes())) {
            let work = work.display();
            let why = format!("`{work}` is not a working folder of `flitcast map`");
            return Err(TaskError::Told(why));
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

    /// Returns the command's current directory: the shard, or an empty folder beside a shard that is a
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

    /// Prepares all folders for a command, after an earlier one as well.
    pub fn prepare(&self) -> Result<Ready, TaskError> {
        let found = match fs::symlink_metadata(&self.shard) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let shard = self.shard.display();
                return Err(TaskError::Told(format!("there is no shard at `{shard}`")));
            }
            Err(error) => return Err(TaskError::io("look at", &self.shard)(error)),
        };
        fs::create_dir_all(&self.task).map_err(TaskError::io("create", &self.task))?;
        // The command of an earlier PE of this number may be ending just now.
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

    /// Moves the files that a command has written to the place where they are gathered. An entry that
    /// cannot be moved or sent is left out and named.
    pub fn collect(&self, ready: &Ready) -> Result<Collected, TaskError> {
        let result = self.result();
        fs::create_dir(&result).map_err(TaskError::io("create", &result))?;
        let directory = self.directory(ready.is_file);
        let mut refused = Refused::default();
        let refuse = |below: &Path, error: io::Error| {
            refused.add(format!("`{}` cannot be moved: {error}", below.display()));
        };
        ready.before.move_new(&directory, &result, refuse)?;
        for (name, said, always) in [
            ("stdout", &self.stdout, true),
            ("stderr", &self.stderr, false),
        ] {
            let to = result.join(name);
            if to.symlink_metadata().is_ok() {
                return Err(TaskError::Told(format!(
                    "it wrote a file named `{name}`, the name of the file for its {name}; have it use another name"
                )));
            }
            let found = said.metadata().map_err(TaskError::io("look at", said))?;
            if always || found.len() > 0 {
                fs::rename(said, &to).map_err(TaskError::io("move", said))?;
            }
        }
        refused.remove_unsendable(&result)?;
        let entries = Walk::below(&result).flatten().map(|(_, found)| found);
        let bytes = entries
            .filter(|found| found.is_file())
            .map(|found| found.len());
        let bytes = bytes.sum();
        let out = self.work.join("out");
        fs::create_dir_all(&out).map_err(TaskError::io("create", &out))?;
        let published = self.published();
        fs::rename(&result, &published).map_err(TaskError::io("move", &result))?;
        Ok(Collected {
            bytes,
            not_taken: refused.lines(),
        })
    }

    /// Removes all folders of the task, and those above that are empty then.
    pub fn clear(&self) -> Result<(), TaskError> {
        if self.task.is_dir() {
            drop(locked(&self.task).map_err(TaskError::Told)?);
        }
        for part in [&self.shard, &self.task, &self.published()] {
            remove(part)?;
        }
        // Incomplete files of a killed PE, and its receipts.
        let input = self.work.join("in");
        for entry in fs::read_dir(&input).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if HiddenName::parse(&name).is_some_and(|name| name.is_beside(self.pe)) {
                remove(&entry.path())?;
            }
        }
        for folder in ["in", "tasks", "out", ""] {
            // Others may have their parts there, and the folder may be gone already.
            let _ = fs::remove_dir(self.work.join(folder));
        }
        Ok(())
    }
}
