//! The result of `flitcast map` as a human-readable table, or as JSON; and the errors of its shards, equal ones
//! together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use flitcast_node::task::failed_name;
use flitcast_proto::wire::control::End;
use serde_json::{Value, json};

use super::args::Map;
use super::shards::Shards;
use super::task::{CommandFate, Mapped, ShardTask};
use flitcast_cluster::rounds::outcome::Outcome;
use flitcast_cluster::rounds::run::Interrupted;
use flitcast_cluster::text::figures::{self, Table, fitted, micros, shortened};
use flitcast_cluster::text::phrases::{command_line, counted, last_words, names};
use flitcast_cluster::text::screen::columns;
use flitcast_cluster::text::title::network_of;
use flitcast_cluster::text::units::{Bytes, Nanos};

/// Number of characters that a long name of a shard has at least on a narrow terminal.
const LEAST_OF_NAME: usize = 12;

/// Describes the shards that are done after an interruption, and the way to run the others.
pub fn interrupted_note(map: &Map, mapped: &Mapped, interrupted: &Interrupted) -> String {
    let earlier = map.shards.done();
    let done = mapped.tasks.iter().filter(|task| task.has_result()).count() + earlier;
    let all = mapped.tasks.len() + earlier;
    let processes = interrupted.processes;
    let output = map.args.output.display();
    let is_gathered = mapped.is_gathered;
    if done > earlier && !is_gathered {
        let results = counted((done - earlier) as u64, "result was", "results were");
        return format!("interrupted twice: {processes}; {results} not gathered");
    }
    let others = match (map.args.joblog.is_some(), map.args.spread) {
        _ if done == 0 || done == all => String::new(),
        (true, false) => "; the same command with --resume runs the others".to_owned(),
        (_, true) => "; with --spread, another map runs all shards again".to_owned(),
        (false, false) => {
            "; another map runs all shards again, because --resume needs a --joblog".to_owned()
        }
    };
    let place = match is_gathered || earlier > 0 {
        true => format!(", in `{output}`"),
        false => String::new(),
    };
    let is = if all == 1 { "shard is" } else { "shards are" };
    format!("interrupted: {processes}; {done} of {all} {is} done{place}{others}")
}

pub fn table(map: &Map, mapped: &Mapped) -> String {
    let table = match map.shards {
        Shards::OfPes { .. } => pes_table(map, mapped),
        Shards::Named { .. } => shards_table(map, mapped),
    };
    heading(map, mapped) + &table + &summary(map, mapped)
}

fn pes_table(map: &Map, mapped: &Mapped) -> String {
    let header = ["PE", "shard", "runs", "exit", "time", "results"];
    let rows = map.scatter.site.tree.below_root().map(|pe| {
        let task = mapped.tasks.iter().find(|task| task.home == pe);
        let runs = task.map_or("-".to_owned(), |task| task.runs.to_string());
        let [shard, exit, time, results] = cells(task);
        [
            map.scatter.site.placement.called(pe),
            shard,
            runs,
            exit,
            time,
            results,
        ]
    });
    let least = ["runs", "shard", "results"];
    let several = mapped.tasks.iter().any(|task| task.runs > 1);
    fitted(table_of(header, rows, several), 1, &least, columns())
}

/// Returns a row for each shard, or for the slowest ones if there are many.
fn shards_table(map: &Map, mapped: &Mapped) -> String {
    const ROWS: usize = 16;
    let mut tasks: Vec<&ShardTask> = mapped.tasks.iter().collect();
    if tasks.len() > ROWS {
        let took = |task: &&ShardTask| task.ran().map(|ran| ran.took_ns);
        tasks.sort_by_key(|task| Reverse(took(task)));
        tasks.truncate(ROWS);
    }
    let header = ["shard", "PE", "runs", "bytes", "exit", "time", "results"];
    let rows = tasks.iter().map(|task| {
        let pe = match task.runs {
            0 => "-".to_owned(),
            _ => map.scatter.site.placement.called(task.pe),
        };
        let [bytes, exit, time, results] = cells(Some(task));
        [
            task.shown(),
            pe,
            task.runs.to_string(),
            bytes,
            exit,
            time,
            results,
        ]
    });
    let several = tasks.iter().any(|task| task.runs > 1);
    let mut table = table_of(header, rows, several);
    table.shorten_names(LEAST_OF_NAME, columns());
    let table = fitted(table, 2, &["runs", "bytes", "results", "PE"], columns());
    let left = mapped.tasks.len() - tasks.len();
    match (tasks.len(), left) {
        (0, _) => String::new(),
        (_, 0) => table,
        _ => table + &format!("  and {left} more: --format json lists them all\n"),
    }
}

/// Returns a table, without the runs if no command was run several times.
fn table_of<const N: usize>(
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    several: bool,
) -> Table {
    let shown = |column: usize| several || header[column] != "runs";
    let columns = || (0..N).filter(|column| shown(*column));
    let mut table = figures::table(columns().map(|column| header[column]));
    for row in rows {
        table.add_row(columns().map(|column| &row[column]));
    }
    table
}

/// Returns the cells of shard, exit status, time and results.
fn cells(task: Option<&ShardTask>) -> [String; 4] {
    let mut cells = ["-"; 4].map(str::to_owned);
    let Some(task) = task else { return cells };
    cells[0] = Bytes(task.shard_bytes).to_string();
    match &task.fate {
        CommandFate::Waiting => {}
        CommandFate::Lost(_) => cells[1] = "lost".to_owned(),
        CommandFate::Killed(_) => cells[1] = "killed".to_owned(),
        CommandFate::Ran(ran) => {
            cells[1] = match &ran.end {
                End::Exited(code) => code.to_string(),
                End::Signalled(signal) => format!("signal {signal}"),
                End::Failed(_) => "failed".to_owned(),
            };
            cells[2] = Nanos(ran.took_ns).to_string();
            if task.is_done() {
                cells[3] = Bytes(ran.wrote_bytes).to_string();
            }
        }
    }
    cells
}

/// Returns the command on one line, cut to a moderate length.
fn command(map: &Map) -> String {
    const LONGEST: usize = 60;
    let shown = command_line(&map.args.command);
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    match shown.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}..", &shown[..end]),
        None => shown,
    }
}

/// Returns the PEs as the user specified them: the tree over a network may be the command's choice.
fn requested_pes(map: &Map) -> String {
    let (tree, name) = (&map.args.tree, &map.scatter.site.name);
    match (tree.workers, &tree.network) {
        _ if tree.root.is_some() || tree.spanning.is_some() => name.clone(),
        (Some(workers), _) => format!("over {}", counted(workers.into(), "PE", "PEs")),
        (None, Some(network)) => network.clone(),
        (None, None) => network_of(name).to_owned(),
    }
}

fn heading(map: &Map, mapped: &Mapped) -> String {
    format!(
        "map {}: {} on {} of {}\n\n",
        requested_pes(map),
        command(map),
        counted(mapped.tasks.len() as u64, "shard", "shards"),
        Bytes(mapped.tasks.iter().map(|task| task.shard_bytes).sum()),
    )
}

fn summary(map: &Map, mapped: &Mapped) -> String {
    let mut out = format!("\n  scatter      {}\n", moved(mapped.scatter.as_deref()));
    let tasks = mapped.tasks.iter();
    let longest = tasks.filter_map(|task| Some((task.ran()?.took_ns, task)));
    let longest = longest.max_by_key(|(took, task)| (*took, task.seq));
    let called = |pe| map.scatter.site.placement.called(pe);
    let running = format!("  run          {}", Nanos(mapped.running.as_nanos() as u64));
    let longest = longest.map(|(_, task)| match task.is_named {
        true => {
            let (before, behind) = (", longest: ", format!(" at {}", called(task.pe)));
            let taken = [&running, before, &behind].map(|part| part.chars().count());
            let taken: usize = taken.iter().sum();
            let room = columns().map_or(usize::MAX, |all| all.saturating_sub(taken));
            let name = shortened(&task.shown(), room.max(LEAST_OF_NAME));
            format!("{before}{name}{behind}")
        }
        false => format!(", longest at {}", called(task.pe)),
    });
    out.push_str(&format!("{running}{}\n", longest.unwrap_or_default()));
    let gather = match (mapped.is_gathered, &mapped.gather) {
        (true, None) => "interrupted".to_owned(),
        (_, gather) => moved(gather.as_deref()),
    };
    out.push_str(&format!("  gather       {gather}\n"));
    for story in &mapped.stories {
        out.push_str(&story.lines());
    }
    if let Some(security) = map.scatter.site.guard.description() {
        out.push_str(&format!("  security     {security}\n"));
    }
    if map.shards.done() > 0 {
        let shards = counted(map.shards.done() as u64, "shard has", "shards have");
        out.push_str(&format!("  earlier      {shards} results already\n"));
    }
    let tasks = mapped.tasks.iter();
    let there: Vec<&ShardTask> = tasks.filter(|task| task.has_result()).collect();
    if there.is_empty() {
        out.push_str("  results      none\n");
        return out;
    }
    out.push_str(&format!(
        "  results      {} of {}, {} of files, verified, in {}\n",
        there.len(),
        mapped.tasks.len(),
        Bytes(there.iter().map(|task| task.wrote_bytes()).sum()),
        map.args.output.display(),
    ));
    out
}

/// Describes the predicted and measured time of a scatter or a gather.
fn moved(outcome: Option<&Outcome>) -> String {
    match outcome.and_then(|outcome| Some((outcome.predicted_ns, outcome.measured?))) {
        Some((predicted, measured)) => {
            let (predicted, measured) = (Nanos(predicted), Nanos(measured.median));
            format!("predicted {predicted}, measured {measured}")
        }
        None => "nothing to send".to_owned(),
    }
}

pub fn json(map: &Map, mapped: &Mapped) -> String {
    let pes = map.scatter.site.tree.below_root().map(|pe| {
        let task = mapped.tasks.iter().find(|task| task.home == pe);
        task.map_or_else(|| json!({ "pe": pe.0, "shard_bytes": null }), task_json)
    });
    let undelivered = mapped.tasks.iter().filter(|task| !task.has_result());
    let words = map.args.command.iter();
    let words = words.map(|word| word.display().to_string());
    let mut result = json!({
        "operation": "map",
        "command": words.collect::<Vec<_>>(),
        "tree": map.scatter.site.name,
        "security": map.scatter.site.guard.name(),
    });
    match map.shards {
        Shards::OfPes { .. } => {
            result["pes"] = pes.collect();
            result["failed"] = undelivered.map(|task| task.pe.0).collect();
        }
        Shards::Named { .. } => {
            result["shards"] = mapped.tasks.iter().map(task_json).collect();
            result["failed"] = undelivered
                .map(|task| task.name.to_string_lossy())
                .collect();
            result["resumed"] = map.shards.done().into();
        }
    }
    result["scatter"] = moved_json(mapped.scatter.as_deref());
    result["run"] = json!({ "seconds": mapped.running.as_secs_f64() });
    result["gather"] = moved_json(mapped.gather.as_deref());
    result["output"] = map.args.output.display().to_string().into();
    let work = map.args.keep_work.then(|| map.work.display().to_string());
    result["work"] = work.into();
    format!("{result:#}\n")
}

fn task_json(task: &ShardTask) -> Value {
    let ran = task.ran();
    let (code, signal) = match ran.map(|ran| &ran.end) {
        Some(End::Exited(code)) => (Some(code), None),
        Some(End::Signalled(signal)) => (None, Some(signal)),
        _ => (None, None),
    };
    json!({
        "pe": task.pe.0,
        "shard": task.name.to_string_lossy(),
        "shard_bytes": task.shard_bytes,
        "runs": task.runs,
        "exit_status": code,
        "signal": signal,
        "error": task.failure().or_else(|| task.left_behind.clone()),
        "last_words": ran.map(|ran| &ran.last_lines),
        "not_taken": task.not_taken(),
        "seconds": ran.map(|ran| ran.took_ns as f64 / 1e9),
        "result_bytes": task.has_result().then(|| task.wrote_bytes()),
    })
}

fn moved_json(outcome: Option<&Outcome>) -> Value {
    let Some(outcome) = outcome else {
        return Value::Null;
    };
    json!({
        "bytes": outcome.bytes,
        "messages": outcome.messages,
        "predicted_us": micros(outcome.predicted_ns),
        "measured_us": outcome.measured.map(|measured| micros(measured.median)),
        "launch_us": micros(outcome.launching.as_nanos() as u64),
    })
}

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
