//! Finds running commands by the files that they write.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use flitcast_node::system::regular;
use thiserror::Error;

use super::draw::name;
use crate::files::runtime_dir::{RuntimeDirError, runtime_dir};
use crate::observe::live::snapshot::Snapshot;
use crate::system::process;

/// Maximum bytes of a file: 100,000 PEs with 400 bytes each.
const LONGEST: u64 = 64 * 1024 * 1024;

/// The reason why there is no command to show.
#[derive(Debug, Error)]
pub enum NotFound {
    #[error("no command is running: start one, or let --wait 1m wait for it")]
    Nobody,
    #[error("process {0} is not a running flitcast command of this user")]
    NotThat(u32),
    #[error("several commands are running; choose one with --pid:\n{}", .0.join("\n"))]
    Several(Vec<String>),
    #[error("{}: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error(transparent)]
    Directory(#[from] RuntimeDirError),
}

/// A running command.
#[derive(Debug)]
pub struct FoundCommand {
    path: PathBuf,
    /// The snapshot when it was found.
    pub picture: Snapshot,
}

impl FoundCommand {
    /// Returns the current snapshot; `None` if the command has ended.
    pub fn look(&self) -> Option<Snapshot> {
        let picture = read(&self.path).ok()?;
        is_alive(&picture).then_some(picture)
    }
}

/// Returns the command with this process id, or the only one.
///
/// # Errors
///
/// Returns an error if there is no such command, or if there are several.
pub fn find(pid: Option<u32>) -> Result<FoundCommand, NotFound> {
    let directory = runtime_dir()?;
    if let Some(pid) = pid {
        let path = directory.join(format!("{pid}.json"));
        return match one(&path)? {
            Some(picture) => Ok(FoundCommand { path, picture }),
            None => Err(NotFound::NotThat(pid)),
        };
    }
    let unreadable = |error: io::Error| NotFound::Unreadable {
        path: directory.clone(),
        why: error.to_string(),
    };
    let mut running = Vec::new();
    for entry in fs::read_dir(&directory).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let is_pid = stem.is_some_and(|stem| stem.parse::<u32>().is_ok());
        if !is_pid || path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        if let Some(picture) = one(&path)? {
            running.push(FoundCommand { path, picture });
        }
    }
    running.sort_by_key(|found| found.picture.pid);
    match running.len() {
        0 => Err(NotFound::Nobody),
        1 => Ok(running.remove(0)),
        _ => Err(NotFound::Several(
            running.iter().map(|found| line(&found.picture)).collect(),
        )),
    }
}

/// Reads a snapshot; returns `None` if the file is missing or its command has ended, and then
/// removes the file.
fn one(path: &Path) -> Result<Option<Snapshot>, NotFound> {
    match read(path) {
        Ok(picture) if is_alive(&picture) => Ok(Some(picture)),
        Ok(_) => {
            // The command was killed. Another process may have removed the file.
            let _ = fs::remove_file(path);
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(NotFound::Unreadable {
            path: path.to_owned(),
            why: error.to_string(),
        }),
    }
}

fn read(path: &Path) -> io::Result<Snapshot> {
    Ok(serde_json::from_slice(&regular::read_file(path, LONGEST)?)?)
}

fn is_alive(picture: &Snapshot) -> bool {
    process::started_at(picture.pid) == Some(picture.process_start)
}

/// Returns the line of one of several commands.
fn line(picture: &Snapshot) -> String {
    let round = match picture.round {
        0 => picture.doing.clone(),
        round => format!("round {round} of {}", picture.rounds),
    };
    format!("  {:>7}  {}, {round}", picture.pid, name(picture))
}
