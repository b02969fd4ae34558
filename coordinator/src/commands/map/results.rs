//! The results in the output: each shard's under its name, and the output of failed commands beside them.
//!
//! Where the message of a PE is not the result of a shard, results are gathered into a hidden folder in
//! the output, and moved from there.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use flitcast_node::payload::{self, destination};
use flitcast_node::task::failed_name;

use super::task::ShardTask;

/// Moves the results of all tasks, and the output of those that failed, from the folder where they were
/// gathered to the output; sets the reason where that fails. `replace` allows to replace results of
/// earlier runs.
pub fn place(tasks: &mut [ShardTask], gathered: &Path, output: &Path, replace: bool) {
    for task in tasks {
        if !task.is_done() && !task.has_output() || task.left_behind.is_some() {
            continue;
        }
        let (from, to) = paths(task, gathered, output);
        if let Err(error) = move_entry(&from, &to, replace) {
            let to = to.display();
            task.left_behind = Some(format!("its result cannot become `{to}`: {error}"));
        }
    }
    if let Err(error) = File::open(output).and_then(|folder| folder.sync_all()) {
        tracing::warn!(%error, "the names of the results may not be durable");
    }
}

/// Removes the output of failed commands on shards that have results now.
///
/// # Errors
///
/// Returns an error if one cannot be removed.
pub fn remove_failed(tasks: &[ShardTask], output: &Path) -> io::Result<()> {
    let done = tasks.iter().filter(|task| task.has_result());
    done.map(|task| output.join(failed_name(&task.name)))
        .try_for_each(|path| payload::remove(&path))
}

/// Returns the path of a gathered result, or of the output of a command that failed, and its place in
/// the output.
fn paths(task: &ShardTask, gathered: &Path, output: &Path) -> (PathBuf, PathBuf) {
    let name = match task.is_done() {
        true => task.name.clone(),
        false => failed_name(&task.name),
    };
    let message = destination(gathered, task.pe);
    let from = match task.is_named {
        true => message.join(&name),
        false => message,
    };
    (from, output.join(name))
}

fn move_entry(from: &Path, to: &Path, replace: bool) -> io::Result<()> {
    // A rename would replace an empty folder.
    match to.symlink_metadata() {
        Ok(_) if replace => payload::remove(to)?,
        Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    std::fs::rename(from, to)
}
