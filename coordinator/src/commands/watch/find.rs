//! Finds running commands by the files that they write.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::bail;
use flitcast_node::system::regular;

use super::draw::name;
use flitcast_cluster::files::runtime_dir::runtime_dir;
use flitcast_cluster::observe::live::snapshot::Snapshot;
use flitcast_cluster::system::process;
use flitcast_cluster::text::phrases::at;

/// Maximum bytes of a file: 100,000 PEs with 400 bytes each.
const LONGEST: u64 = 64 * 1024 * 1024;

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

/// Returns the command with this process id, or the only one, if it runs.
///
/// # Errors
///
/// Returns an error if there are several.
pub fn find(pid: Option<u32>) -> anyhow::Result<Option<FoundCommand>> {
    let directory = runtime_dir()?;
    if let Some(pid) = pid {
        let path = directory.join(format!("{pid}.json"));
        let picture = one(&path)?;
        return Ok(picture.map(|picture| FoundCommand { path, picture }));
    }
    let mut running = Vec::new();
    for entry in fs::read_dir(&directory).map_err(at(&directory))? {
        let path = entry.map_err(at(&directory))?.path();
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
    if running.len() > 1 {
        let lines: Vec<String> = running.iter().map(|found| line(&found.picture)).collect();
        let lines = lines.join("\n");
        bail!("several commands are running; choose one with --pid:\n{lines}");
    }
    Ok(running.pop())
}

/// Reads a snapshot; returns `None` if the file is missing or its command has ended, and then
/// removes the file.
fn one(path: &Path) -> anyhow::Result<Option<Snapshot>> {
    match read(path) {
        Ok(picture) if is_alive(&picture) => Ok(Some(picture)),
        Ok(_) => {
            // The command was killed. Another process may have removed the file.
            let _ = fs::remove_file(path);
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(at(path)(error)),
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
