//! The results in the output: each shard's under its name, and the output of failed commands beside them.
//!
//! Where the message of a PE is not the result of a shard, results are gathered into a hidden folder in
//! the output, and moved from there: here, or by P0 if it is on another host.

use std::ffi::OsString;
use std::path::PathBuf;

use flitcast_node::payload::destination;
use flitcast_node::task::{failed_name, place_results};
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, PlaceResults, ToPe};

use super::args::Map;
use super::at_root::query_root;
use super::task::{Mapped, ShardTask};
use flitcast_cluster::system::interrupts::Interrupts;

/// Moves the results of all tasks, and the output of those that failed, from the hidden folder to the
/// output; sets the reason where that fails.
pub async fn place(
    map: &Map,
    mapped: &mut Mapped,
    dead_pes: &[PeId],
    logs: &[String],
    interrupts: &mut Interrupts,
) -> anyhow::Result<()> {
    let has_any =
        |task: &&mut ShardTask| (task.is_done() || task.has_output()) && task.left_behind.is_none();
    let mut tasks: Vec<&mut ShardTask> = mapped.tasks.iter_mut().filter(has_any).collect();
    let results = PlaceResults {
        gathered: map.gathered.clone(),
        output: map.args.output.clone(),
        from: tasks.iter().map(|task| from(task)).collect(),
        to: tasks.iter().map(|task| to(task)).collect(),
        replace: map.args.replaces(),
        obsolete: tasks.iter().map(|task| obsolete(task)).collect(),
    };
    let faults = match map.scatter.site.placement.is_elsewhere() {
        true => {
            let command = ToPe::PlaceResults(results);
            match query_root(map, command, dead_pes, logs, interrupts).await? {
                Ok(FromPe::ResultsPlaced { faults }) if faults.len() == tasks.len() => faults,
                Ok(other) => vec![format!("unexpected answer: {}", other.kind()); tasks.len()],
                Err(why) => vec![format!("its result was not moved: {why}"); tasks.len()],
            }
        }
        false => tokio::task::spawn_blocking(move || place_results(&results)).await?,
    };
    for (task, fault) in tasks.iter_mut().zip(faults) {
        task.left_behind = Some(fault).filter(|fault| !fault.is_empty());
    }
    Ok(())
}

/// Returns the path of a gathered result, or of the output of a command that failed.
fn from(task: &ShardTask) -> PathBuf {
    let message = destination("".as_ref(), task.pe);
    match task.is_named {
        true => message.join(to(task)),
        false => message,
    }
}

/// Returns its name in the output.
fn to(task: &ShardTask) -> OsString {
    match task.is_done() {
        true => task.name.clone(),
        false => failed_name(&task.name),
    }
}

/// Returns the name of the output of an earlier command that failed, if this one succeeded.
fn obsolete(task: &ShardTask) -> OsString {
    match task.is_done() {
        true => failed_name(&task.name),
        false => OsString::new(),
    }
}
