//! The errors of a map: those of its shards, equal ones together.

use std::collections::BTreeMap;

use flitcast_node::task::failed_name;

use super::args::Map;
use super::task::{CommandFate, Mapped, ShardTask};
use flitcast_cluster::text::phrases::{counted, last_words, names};

/// Number of shards with equal errors up to which each has its own line.
const SEPARATE: usize = 3;

/// An error of a shard.
struct ShardError<'a> {
    task: &'a ShardTask,
    text: String,
    /// Whether the output of the command is kept.
    has_output: bool,
}

impl ShardError<'_> {
    /// Returns the parts that equal errors have in common.
    fn key(&self) -> (&str, bool) {
        (&self.text, self.has_output)
    }
}

/// Returns the errors of all shards whose command failed or whose result is incomplete: a line for each,
/// or for many equal ones.
pub fn shard_errors(map: &Map, mapped: &Mapped) -> Vec<String> {
    let mut all: Vec<ShardError<'_>> = Vec::new();
    let mut waiting = 0;
    for task in &mapped.tasks {
        if mapped.is_as_interrupted(task) {
            continue;
        }
        let mut add = |text, has_output| {
            all.push(ShardError {
                task,
                text,
                has_output,
            });
        };
        if task.is_named && matches!(task.fate, CommandFate::Waiting) {
            waiting += 1;
        } else if let Some(why) = task.failure() {
            let lines = task.ran().map_or(&[][..], |ran| &ran.last_lines);
            let printed = last_words("; it last printed: ", lines);
            let is_kept = task.has_output() && task.left_behind.is_none();
            add(format!("{why}{printed}"), is_kept);
        }
        for why in task.not_taken() {
            add(format!("not in its result: {why}"), false);
        }
        if let Some(why) = &task.left_behind {
            add(why.clone(), false);
        }
    }
    let mut equal: BTreeMap<(&str, bool), Vec<&ShardTask>> = BTreeMap::new();
    for error in &all {
        let tasks = equal.entry(error.key()).or_default();
        tasks.push(error.task);
    }
    let mut out = Vec::new();
    for error in &all {
        match equal.get(&error.key()).map(Vec::as_slice) {
            Some(tasks) if tasks.len() > SEPARATE => {
                out.push(common_line(map, error, tasks));
                equal.remove(&error.key());
            }
            Some(_) => out.push(line(map, error)),
            // The common line has it.
            None => {}
        }
    }
    if waiting > 0 {
        let shards = counted(waiting, "shard was", "shards were");
        out.push(format!(
            "{shards} not run, because commands on others failed"
        ));
    }
    out
}

/// Returns the line of an error.
fn line(map: &Map, error: &ShardError<'_>) -> String {
    let ShardError {
        task,
        text,
        has_output,
    } = error;
    let output = map.args.output.join(failed_name(&task.name));
    let output = has_output.then(|| format!("; its output is in {}", output.display()));
    format!("{}: {text}{}", task.subject(), output.unwrap_or_default())
}

/// Returns the line of an error that the commands on all these shards have.
fn common_line(map: &Map, error: &ShardError<'_>, tasks: &[&ShardTask]) -> String {
    let is_named = error.task.is_named;
    let name = |task: &&ShardTask| {
        if is_named {
            task.shown()
        } else {
            task.subject()
        }
    };
    let first: Vec<String> = tasks.iter().take(SEPARATE).map(name).collect();
    let output = map.args.output.join(failed_name("NAME".as_ref()));
    let output = error
        .has_output
        .then(|| format!("; the output of each is in {}", output.display()));
    format!(
        "{} {} ({} and {} more): {}{}",
        tasks.len(),
        if is_named { "shards" } else { "PEs" },
        names(&first),
        tasks.len() - first.len(),
        error.text,
        output.unwrap_or_default()
    )
}
