//! The working folder: its protection from other users, and its removal.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use flitcast_node::payload::remove;
use flitcast_node::task::{WorkLock, clear_away, clear_dead, remove_if_empty};
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, ToPe};
use tokio::time::Instant;

use super::args::Map;
use flitcast_cluster::launch::cluster::{Cluster, PeEvent};
use flitcast_cluster::observe::console::Console;
use flitcast_cluster::rounds::run::{RunResult, on_a_cluster};
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::stderr;

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
    let pes = map
        .scatter
        .site
        .tree
        .pes()
        .filter(|pe| !dead_pes.contains(pe));
    let pes: Vec<PeId> = pes.collect();
    let work = map.work.clone();
    let (root, gathered) = (map.scatter.site.tree.root(), map.gathered.clone());
    let done = async |cluster: &mut Cluster, _: &Console, _, _: &_| {
        Ok(clear_parts(cluster, work, (root, gathered)).await)
    };
    let mut left: Vec<String> = dead_pes.iter().map(|pe| format!("{pe} is gone")).collect();
    left.extend(
        match on_a_cluster(&map.scatter, &pes, logs, interrupts, done, |_| true).await? {
            RunResult::Done(left) => left,
            RunResult::Failed(failure) => {
                let others = failure.others.into_iter().map(|(_, cause)| cause);
                std::iter::once(failure.cause).chain(others).collect()
            }
            RunResult::Interrupted(_) => vec!["interrupted".to_owned()],
        },
    );
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
        let (work, gathered) = match pe == gathered.0 {
            true => (work.clone(), gathered.1.clone()),
            false => (work.clone(), PathBuf::new()),
        };
        cluster
            .send_command(pe, ToPe::Clear { work, gathered })
            .await;
    }
    let mut waiting: Vec<PeId> = cluster.pes().collect();
    let mut left_over = Vec::new();
    let deadline = Instant::now() + CLEARING;
    while !waiting.is_empty() {
        match cluster.next_event(deadline).await {
            Some((_, PeEvent::Reply(FromPe::Pong(_)))) => {}
            Some((pe, event)) => {
                let waiting_before = waiting.len();
                waiting.retain(|other| *other != pe);
                match event {
                    _ if waiting.len() == waiting_before => {}
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
