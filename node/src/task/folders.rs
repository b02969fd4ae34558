//! A PE's part of a working folder.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::{fs, io};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::Run;
use flitcast_proto::wire::{MAX_LINE_CHARS, MAX_NOT_TAKEN};

use super::listing::{Listing, Walk};
use super::lock::{ended_below, locked};
use super::{TaskError, WORK_PREFIX, remove};
use crate::limits::UNSENDABLE_ENTRIES;
use crate::payload::{Content, HiddenName, destination};

/// The folders of a task: its shard, its result and its working files.
#[derive(Clone, Debug)]
pub struct Folders {
    /// The place of the result.
    published: PathBuf,
    /// The name of the shard; `None` if it is the PE's whole input.
    name: Option<OsString>,
    /// The name by which a shard that is a file is linked in the command's current directory.
    link: Option<OsString>,
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
    pub bytes: u64,
    /// Entries that are not in it, and why, a line each.
    pub not_taken: Vec<String>,
    /// Whether it is the output of a command that failed.
    pub is_output: bool,
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
    pub fn of(run: &Run, pe: PeId) -> Result<Folders, TaskError> {
        let work = checked(&run.work)?;
        let (name, home) = match run.home {
            Some(home) => (Some(run.shard.clone()), home),
            None => (None, pe),
        };
        let at = |folder: &str, of: PeId| {
            let of = destination(&work.join(folder), of);
            name.as_ref().map_or(of.clone(), |name| of.join(name))
        };
        let task = at("tasks", home);
        Ok(Folders {
            published: at("out", pe),
            link: run.linked.then(|| run.shard.clone()),
            shard: at("in", home),
            stdout: task.join("stdout"),
            stderr: task.join("stderr"),
            name,
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

    /// Returns the place of the output of a command that failed.
    fn published_output(&self) -> PathBuf {
        match &self.name {
            None => self.published.clone(),
            Some(name) => self.published.with_file_name(failed_name(name)),
        }
    }

    /// Removes the results of this PE's earlier commands on the shard. Those of other PEs stay: a command
    /// may run on the shard there.
    fn remove_results(&self) -> Result<(), TaskError> {
        remove(&self.result())?;
        remove(&self.published)?;
        remove(&self.published_output())
    }

    /// Creates the empty folder in which the command on a shard that is a file runs.
    fn make_directory(&self) -> Result<(), TaskError> {
        let directory = self.directory(true);
        remove(&directory)?;
        fs::create_dir(&directory).map_err(TaskError::io("create", &directory))?;
        if let Some(link) = &self.link {
            let link = directory.join(link);
            // A file system without hard links has symlinks.
            fs::hard_link(&self.shard, &link)
                .or_else(|_| std::os::unix::fs::symlink(&self.shard, &link))
                .map_err(TaskError::io("create", &link))?;
        }
        Ok(())
    }

    /// Prepares all folders for a command, after an earlier one as well.
    pub fn prepare(&self) -> Result<Ready, TaskError> {
        let found = match fs::symlink_metadata(&self.shard) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let shard = self.shard.display();
                return Err(TaskError::Other(format!("there is no shard at `{shard}`")));
            }
            Err(error) => return Err(TaskError::io("look at", &self.shard)(error)),
        };
        fs::create_dir_all(&self.task).map_err(TaskError::io("create", &self.task))?;
        // The command of an earlier PE of this number may be ending just now.
        drop(locked(&self.task).map_err(TaskError::Other)?);
        self.remove_results()?;
        for old in [&self.stdout, &self.stderr] {
            remove(old)?;
        }
        let is_file = !found.is_dir();
        let directory = self.directory(is_file);
        let before = match is_file {
            true => {
                self.make_directory()?;
                Listing::of(&directory)?
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
        for (name, file, always) in [
            ("stdout", &self.stdout, true),
            ("stderr", &self.stderr, false),
        ] {
            let to = result.join(name);
            if to.symlink_metadata().is_ok() {
                return Err(TaskError::Other(format!(
                    "it wrote a file named `{name}`, the name of the file for its {name}; have it use another name"
                )));
            }
            let found = file.metadata().map_err(TaskError::io("look at", file))?;
            if always || found.len() > 0 {
                fs::rename(file, &to).map_err(TaskError::io("move", file))?;
            }
        }
        refused.remove_unsendable(&result)?;
        let entries = Walk::below(&result).flatten().map(|(_, found)| found);
        let bytes = entries
            .filter(|found| found.is_file())
            .map(|found| found.len());
        let bytes = bytes.sum();
        self.publish(&self.published)?;
        Ok(Collected {
            bytes,
            not_taken: refused.lines(),
            is_output: false,
        })
    }

    /// Moves the output of a command that failed to a place where it is gathered. Nothing is moved if
    /// there is no output and the command did not run.
    pub fn collect_output(&self, ran: bool) -> Result<Collected, TaskError> {
        let length = |path: &PathBuf| path.metadata().map_or(0, |found| found.len());
        let bytes = length(&self.stdout) + length(&self.stderr);
        if bytes == 0 && !ran {
            return Ok(Collected::default());
        }
        let result = self.result();
        remove(&result)?;
        fs::create_dir(&result).map_err(TaskError::io("create", &result))?;
        for (name, file) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            match fs::rename(file, result.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                moved => moved.map_err(TaskError::io("move", file))?,
            }
        }
        self.publish(&self.published_output())?;
        Ok(Collected {
            bytes,
            is_output: true,
            ..Collected::default()
        })
    }

    /// Moves the complete result to the place where it is gathered.
    fn publish(&self, to: &Path) -> Result<(), TaskError> {
        let (result, folder) = (self.result(), to.parent().unwrap_or(to));
        fs::create_dir_all(folder).map_err(TaskError::io("create", folder))?;
        fs::rename(&result, to).map_err(TaskError::io("move", &result))
    }
}

/// Returns the name of the output of a command that failed, beside the result of its shard.
pub fn failed_name(shard: &OsStr) -> OsString {
    let mut name = shard.to_owned();
    name.push(".failed");
    name
}

/// Checks that a path is that of a working folder of `flitcast map`.
pub fn checked(work: &Path) -> Result<&Path, TaskError> {
    let name = work.file_name().map(|name| name.as_encoded_bytes());
    match name.is_some_and(|name| name.starts_with(WORK_PREFIX.as_bytes())) {
        true => Ok(work),
        false => {
            let work = work.display();
            let why = format!("`{work}` is not a working folder of `flitcast map`");
            Err(TaskError::Other(why))
        }
    }
}

/// Removes all folders of a PE below a working folder, and those above that are empty then.
pub fn clear(work: &Path, pe: PeId) -> Result<(), TaskError> {
    let work = checked(work)?;
    let [input, tasks, out] = ["in", "tasks", "out"].map(|folder| work.join(folder));
    let task = destination(&tasks, pe);
    ended_below(&task).map_err(TaskError::Other)?;
    for part in [destination(&input, pe), task, destination(&out, pe)] {
        remove(&part)?;
    }
    // Incomplete files of a killed PE, and its receipts.
    for entry in fs::read_dir(&input).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if HiddenName::parse(&name).is_some_and(|name| name.is_beside(pe)) {
            remove(&entry.path())?;
        }
    }
    for folder in [&input, &tasks, &out, work] {
        // Others may have their parts there, and the folder may be gone already.
        let _ = fs::remove_dir(folder);
    }
    Ok(())
}
