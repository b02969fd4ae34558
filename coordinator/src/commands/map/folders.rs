//! Requests to PEs beside the runs, and the folders of this host for them: the shards of the input and the places of
//! results, if P0 is on another host; the working folder, its protection from other users, and its removal.
//!
//! The result of each shard is in the output under its name, and the output of failed commands beside them. Where the
//! message of a PE is not the result of a shard, results are gathered into a hidden folder in the output, and moved
//! from there: here, or by P0 if it is on another host.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use flitcast_node::payload::{destination, remove};
use flitcast_node::task::{
    WorkLock, clear_away, clear_dead, failed_name, place_results, remove_if_empty,
};
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, Payload, PlaceResults, ToPe};
use tokio::time::Instant;

use super::args::Map;
use super::shards::Shards;
use super::task::{Mapped, ShardTask};
use flitcast_cluster::launch::cluster::{Cluster, PeEvent};
use flitcast_cluster::observe::console::Console;
use flitcast_cluster::rounds::run::{RunResult, on_a_cluster};
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::phrases::last_words;
use flitcast_cluster::text::stderr;

/// Time for P0 to answer: to list an input, or to move results.
const ANSWER: Duration = Duration::from_secs(600);

/// Sends a request to P0 on a new cluster, and returns its answer, or the reason why there is none.
///
/// # Errors
///
/// Returns an error if partial output could not be removed.
async fn query_root(
    map: &Map,
    command: ToPe,
    dead_pes: &[PeId],
    logs: &[String],
    interrupts: &mut Interrupts,
) -> anyhow::Result<Result<FromPe, String>> {
    let site = &map.scatter.site;
    let root = site.tree.root();
    // PEs that join are all present.
    let pes = match site.placement.is_joined() {
        true => alive(map, dead_pes),
        false => vec![root],
    };
    let done = async |cluster: &mut Cluster, _: &Console, _, _: &_| {
        cluster.send_command(root, command).await;
        Ok(answer(cluster, root).await)
    };
    let result = on_a_cluster(&map.scatter, &pes, logs, interrupts, done, |_| true).await?;
    Ok(match result {
        RunResult::Done(answer) => answer,
        RunResult::Failed(failure) => Err(failure.cause),
        RunResult::Interrupted(_) => Err("interrupted".to_owned()),
    })
}

fn alive(map: &Map, dead_pes: &[PeId]) -> Vec<PeId> {
    let pes = map.scatter.site.tree.pes();
    pes.filter(|pe| !dead_pes.contains(pe)).collect()
}

/// Waits for the answer of P0.
async fn answer(cluster: &mut Cluster, root: PeId) -> Result<FromPe, String> {
    let deadline = Instant::now() + ANSWER;
    loop {
        match cluster.next_event(deadline).await {
            Some((_, PeEvent::Reply(FromPe::Pong(_)))) => {}
            Some((pe, PeEvent::Reply(reply))) if pe == root => return Ok(reply),
            Some((pe, PeEvent::Exited(exit, lines))) if pe == root => {
                let printed = last_words("; it last printed: ", &lines);
                return Err(format!("{root} {exit}{printed}"));
            }
            Some((pe, PeEvent::ChannelEnded(_))) if pe == root => {
                if cluster.joined_from(root).is_some() {
                    return Err(format!("{root} is gone"));
                }
                // The end of its process is reported next.
                cluster.give_up_on(root);
            }
            Some(_) => {}
            None => return Err(format!("{root} does not answer")),
        }
    }
}

/// Completes the map by the shards that P0 lists.
///
/// # Errors
///
/// Returns the reasons why these shards cannot be scattered.
pub async fn look(
    map: &mut Map,
    logs: &[String],
    interrupts: &mut Interrupts,
) -> anyhow::Result<Result<(), Vec<anyhow::Error>>> {
    let command = ToPe::ListShards {
        input: map.args.input.clone(),
        output: map.args.output.clone(),
    };
    let root = map.scatter.site.tree.root();
    let listed = match query_root(map, command, &[], logs, interrupts).await? {
        Ok(FromPe::ShardsListed {
            names,
            sizes,
            results,
            fault,
        }) if fault.is_empty() => (names.into_iter().zip(sizes).collect(), results),
        Ok(FromPe::ShardsListed { fault, .. }) => {
            return Ok(Err(vec![anyhow!("--input: {root}: {fault}")]));
        }
        Ok(other) => anyhow::bail!("{root}: unexpected answer: {}", other.kind()),
        Err(why) => anyhow::bail!("the shards cannot be listed: {why}"),
    };
    Ok(complete(map, listed.0, listed.1.into_iter().collect()))
}

/// Completes the map by the shards in its input and the entries in its output.
fn complete(
    map: &mut Map,
    shards: Vec<(OsString, u64)>,
    results: BTreeSet<OsString>,
) -> Result<(), Vec<anyhow::Error>> {
    let done = map.args.done(|shard| results.contains(shard));
    let done = done.map_err(|fault| vec![fault])?;
    map.shards = Shards::listed(shards, &map.args.tree, done.as_ref())?;
    let names = map.shards.names();
    if map.shards.are_of_pes() {
        return Ok(());
    }
    let in_the_way = names.iter().filter(|name| results.contains(*name));
    let faults = in_the_way.map(|name| {
        let path = map.args.output.join(name);
        let path = path.display();
        anyhow!("--output: {path} exists already; --force replaces it")
    });
    let faults: Vec<anyhow::Error> = faults.collect();
    if !faults.is_empty() && !map.args.replaces() {
        return Err(faults);
    }
    map.scatter.messages.later_output = None;
    if let Payload::Files(files) = &mut map.scatter.messages.payload {
        files.spread = true;
        files.shards = names;
    }
    Ok(())
}

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

/// Time for a PE to remove its part after the end of its command.
const CLEARING: Duration = Duration::from_secs(60);

/// Protects an empty folder on this host from other users and other runs, and removes neighbouring
/// folders whose runs were killed.
pub async fn restrict(map: &Map) -> anyhow::Result<Option<WorkLock>> {
    if !map.work.exists() {
        return Ok(None);
    }
    let work = map.work.clone();
    let locked = tokio::task::spawn_blocking(move || {
        std::fs::set_permissions(&work, Permissions::from_mode(0o700))?;
        let lock = WorkLock::take(&work)?;
        clear_dead(&work);
        io::Result::Ok(lock)
    });
    let locked = locked.await?;
    Ok(Some(locked.with_context(|| {
        format!("cannot use {}", map.work.display())
    })?))
}

/// Removes the hidden folder in the output from which results are moved.
pub async fn clear_gathered(map: &Map) -> anyhow::Result<()> {
    if map.scatter.site.placement.is_elsewhere() {
        // P0 removes it.
        return Ok(());
    }
    let gathered = map.gathered.clone();
    let cleared = tokio::task::spawn_blocking(move || remove(&gathered)).await?;
    cleared.with_context(|| format!("cannot remove {}", map.gathered.display()))
}

/// Removes the working folder on all hosts. If other hosts have to be called again for that, a
/// second Ctrl-C leaves the folder there.
pub async fn clear(
    map: &Map,
    dead_pes: &[PeId],
    logs: &[String],
    interrupts: &mut Interrupts,
) -> anyhow::Result<()> {
    let work = map.work.clone();
    if map.scatter.site.placement.is_spread() {
        clear_everywhere(map, dead_pes, logs, interrupts).await?;
        // The PEs on this host could not remove the mark of this run.
        tokio::task::spawn_blocking(move || remove_if_empty(&work)).await?;
        return Ok(());
    }
    let cleared = tokio::task::spawn_blocking(move || clear_away(&work)).await?;
    cleared.context("cannot remove the working folder")
}

/// Lets every PE remove its part.
async fn clear_everywhere(
    map: &Map,
    dead_pes: &[PeId],
    logs: &[String],
    interrupts: &mut Interrupts,
) -> anyhow::Result<()> {
    let pes = alive(map, dead_pes);
    let work = map.work.clone();
    let (root, gathered) = (map.scatter.site.tree.root(), map.gathered.clone());
    let done = async |cluster: &mut Cluster, _: &Console, _, _: &_| {
        Ok(clear_parts(cluster, work, (root, gathered)).await)
    };
    let mut left: Vec<String> = dead_pes.iter().map(|pe| format!("{pe} is gone")).collect();
    match on_a_cluster(&map.scatter, &pes, logs, interrupts, done, |_| true).await? {
        RunResult::Done(more) => left.extend(more),
        RunResult::Failed(failure) => {
            left.push(failure.cause);
            left.extend(failure.others.into_iter().map(|(_, cause)| cause));
        }
        RunResult::Interrupted(_) => left.push("interrupted".to_owned()),
    }
    let shown = map.work.display();
    for why in left {
        stderr::warning(format_args!("{shown} may be left: {why}"));
    }
    Ok(())
}

/// Has all PEs remove their parts; returns what is left, with the reasons.
/// `gathered` is a PE with its further folder.
async fn clear_parts(
    cluster: &mut Cluster,
    work: PathBuf,
    gathered: (PeId, PathBuf),
) -> Vec<String> {
    for pe in cluster.pes() {
        let own = gathered.1.clone();
        let gathered = if pe == gathered.0 {
            own
        } else {
            PathBuf::new()
        };
        let work = work.clone();
        let command = ToPe::Clear { work, gathered };
        cluster.send_command(pe, command).await;
    }
    let mut waiting: Vec<PeId> = cluster.pes().collect();
    let mut left_over = Vec::new();
    let deadline = Instant::now() + CLEARING;
    while !waiting.is_empty() {
        match cluster.next_event(deadline).await {
            Some((_, PeEvent::Reply(FromPe::Pong(_)))) => {}
            Some((pe, event)) => {
                let Some(place) = waiting.iter().position(|other| *other == pe) else {
                    continue;
                };
                waiting.remove(place);
                match event {
                    PeEvent::Reply(FromPe::Cleared { left }) if left.is_empty() => {}
                    PeEvent::Reply(FromPe::Cleared { left }) => {
                        left_over.push(format!("{pe}: {left}"))
                    }
                    _ => left_over.push(format!("{pe} is gone")),
                }
            }
            None => {
                left_over.extend(waiting.drain(..).map(|pe| format!("{pe} says nothing")));
            }
        }
    }
    left_over
}
