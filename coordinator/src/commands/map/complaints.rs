//! The errors of a map: those of its shards, equal ones together.

use std::collections::BTreeMap;

use flitcast_node::task::failed_name;

use super::args::Map;
use super::task::{CommandFate, Mapped, ShardTask};
use flitcast_cluster::text::phrases::{counted, last_words, names};

/// Number of shards with equal errors up to which each has its own line.
const SEPARATE: usize = 3;

/// An error of a shard: its text, and whether the output of the command is kept.
type ShardError = (String, bool);

/// Returns the errors of all shards whose command failed or whose result is incomplete: a line for each,
/// or for many equal ones.
pub fn shard_errors(map: &Map, mapped: &Mapped) -> Vec<String> {
    let mut all: Vec<(&ShardTask, ShardError)> = Vec::new();
    let mut waiting = 0;
    for task in &mapped.tasks {
        if mapped.is_as_interrupted(task) {
            continue;
        }
        if task.is_named && matches!(task.fate, CommandFate::Waiting) {
            waiting += 1;
        } else if let Some(why) = task.failure() {
            let lines = task.ran().map_or(&[][..], |ran| &ran.last_lines);
            let printed = last_words("; it last printed: ", lines);
            let is_kept = task.has_output() && task.left_behind.is_none();
            all.push((task, (format!("{why}{printed}"), is_kept)));
        }
        let not_taken = task.not_taken().iter();
        let not_taken = not_taken.map(|why| format!("not in its result: {why}"));
        let more = not_taken.chain(task.left_behind.clone());
        all.extend(more.map(|text| (task, (text, false))));
    }
    let mut equal: BTreeMap<&ShardError, Vec<&ShardTask>> = BTreeMap::new();
    for (task, error) in &all {
        equal.entry(error).or_default().push(task);
    }
    let mut out = Vec::new();
    for (task, error) in &all {
        match equal.get(error).map(Vec::as_slice) {
            Some(tasks) if tasks.len() > SEPARATE => {
                out.push(common_line(map, error, tasks));
                equal.remove(error);
            }
            Some(_) => out.push(line(map, task, error)),
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
fn line(map: &Map, task: &ShardTask, (text, has_output): &ShardError) -> String {
    let output = map.args.output.join(failed_name(&task.name));
    let output = has_output.then(|| format!("; its output is in {}", output.display()));
    format!("{}: {text}{}", task.subject(), output.unwrap_or_default())
}

/// Returns the line of an error that the commands on all these shards have.
fn common_line(map: &Map, (text, has_output): &ShardError, tasks: &[&ShardTask]) -> String {
    let is_named = tasks[0].is_named;
    let name = |task: &&ShardTask| match is_named {
        true => task.shown(),
        false => task.subject(),
    };
    let first: Vec<String> = tasks.iter().take(SEPARATE).map(name).collect();
    let output = map.args.output.join(failed_name("NAME".as_ref()));
    let output = has_output.then(|| format!("; the output of each is in {}", output.display()));
    format!(
        "{} {} ({} and {} more): {text}{}",
        tasks.len(),
        if is_named { "shards" } else { "PEs" },
        names(&first),
        tasks.len() - first.len(),
        output.unwrap_or_default()
    )
}
