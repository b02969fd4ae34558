//! Finds the commands that run, by the files that they write.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::draw::name;
use crate::files::runtime_dir::{RuntimeDirError, runtime_dir};
use crate::observe::live::picture::Picture;
use crate::system::process;

/// Of a file: 100,000 PEs with 400 bytes each.
const LONGEST: u64 = 64 * 1024 * 1024;

/// Why there is nothing to show.
#[derive(Debug, Error)]
pub enum NotFound {
    #[error("no command is running: start one, or let --wait 1m wait for it")]
    Nobody,
    #[error("process {0} is no running flitcast command of yours")]
    NotThat(u32),
    #[error("several commands are running; --pid says which:\n{}", .0.join("\n"))]
    Several(Vec<String>),
    #[error("{}: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error(transparent)]
    Directory(#[from] RuntimeDirError),
}

/// A command that runs.
#[derive(Debug)]
pub struct FoundCommand {
    path: PathBuf,
    /// As it was found.
    pub picture: Picture,
}

impl FoundCommand {
    /// How it is now; `None` once the command has ended.
    pub fn look(&self) -> Option<Picture> {
        let picture = read(&self.path).ok()?;
        is_alive(&picture).then_some(picture)
    }
}

/// The command with this process, or the only one.
///
/// # Errors
///
/// There is none, or there are several.
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

/// What stands in a file; `None` if it is gone, or its command is: then it goes as well.
fn one(path: &Path) -> Result<Option<Picture>, NotFound> {
    match read(path) {
        Ok(picture) if is_alive(&picture) => Ok(Some(picture)),
        Ok(_) => {
            // Of a command that was killed. Somebody else may have removed it by now.
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

fn read(path: &Path) -> io::Result<Picture> {
    let mut text = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

fn is_alive(picture: &Picture) -> bool {
    process::started_at(picture.pid) == Some(picture.process_start)
}

/// One of several.
fn line(picture: &Picture) -> String {
    let round = match picture.round {
        0 => picture.doing.clone(),
        round => format!("round {round} of {}", picture.rounds),
    };
    format!("  {:>7}  {}, {round}", picture.pid, name(picture))
}
