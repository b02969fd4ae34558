//! The working folder: kept from others, and removed in the end.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use flitcast_node::task::clear_away;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, ToPe};
use tokio::time::Instant;

use super::Map;
use crate::launch::cluster::{Cluster, Heard};
use crate::launch::log_args::LogArgs;
use crate::observe::console::Console;
use crate::rounds::run::{Ended, Interrupts, on_a_cluster};
use crate::text::printable::printable;

/// For a PE to remove what it has, when a command that it ran has ended.
const CLEARING: Duration = Duration::from_secs(60);

/// Keeps other users out of a folder on this host, in which nothing is yet.
///
/// # Errors
///
/// It cannot be done.
pub fn restrict(map: &Map) -> anyhow::Result<()> {
    match map.work.exists() {
        true => std::fs::set_permissions(&map.work, Permissions::from_mode(0o700))
            .with_context(|| format!("cannot use {}", map.work.display())),
        false => Ok(()),
    }
}

/// Removes it, wherever it is. On other hosts, where the PEs have to be called once more, a
/// second Ctrl-C leaves it.
///
/// # Errors
///
/// It cannot be removed.
pub async fn clear(
    map: &Map,
    gone: &[PeId],
    logs: &LogArgs,
    interrupts: &mut Interrupts,
) -> anyhow::Result<()> {
    match map.is_local() {
        true => {
            let work = map.work.clone();
            let cleared = tokio::task::spawn_blocking(move || clear_away(&work)).await?;
            cleared.context("cannot remove the working folder")
        }
        false => clear_everywhere(map, gone, logs, interrupts).await,
    }
}

/// Has every PE remove its part.
async fn clear_everywhere(
    map: &Map,
    gone: &[PeId],
    logs: &LogArgs,
    interrupts: &mut Interrupts,
) -> anyhow::Result<()> {
    let pes = map.scatter.site.tree.pes().filter(|pe| !gone.contains(pe));
    let pes: Vec<PeId> = pes.collect();
    let work = map.work.clone();
    let done = async |cluster: &mut Cluster, _: &Console, _| Ok(told(cluster, work).await);
    let mut left: Vec<String> = gone.iter().map(|pe| format!("{pe} is gone")).collect();
    left.extend(
        match on_a_cluster(&map.scatter, &pes, logs, interrupts, done, |_| true).await? {
            Ended::Done(left) => left,
            Ended::Failed(failure) => {
                let others = failure.others.into_iter().map(|(_, cause)| cause);
                std::iter::once(failure.cause).chain(others).collect()
            }
            Ended::Interrupted => vec!["interrupted".to_owned()],
        },
    );
    let shown = map.work.display();
    for why in left {
        eprintln!(
            "{}",
            printable(format!("warning: {shown} may be left: {why}"))
        );
    }
    Ok(())
}

/// Tells all to clear; what is left, and why.
async fn told(cluster: &mut Cluster, work: PathBuf) -> Vec<String> {
    cluster.say_to_all(&ToPe::Clear { work }).await;
    let mut asked: Vec<PeId> = cluster.pes().collect();
    let mut left_over = Vec::new();
    let deadline = Instant::now() + CLEARING;
    while !asked.is_empty() {
        match cluster.hear(deadline).await {
            Some((_, Heard::Word(FromPe::Pong(_)))) => {}
            Some((pe, heard)) => {
                let was_asked = asked.len();
                asked.retain(|other| *other != pe);
                match heard {
                    _ if asked.len() == was_asked => {}
                    Heard::Word(FromPe::Cleared { left }) if left.is_empty() => {}
                    Heard::Word(FromPe::Cleared { left }) => {
                        left_over.push(format!("{pe}: {left}"))
                    }
                    _ => left_over.push(format!("{pe} is gone")),
                }
            }
            None => {
                left_over.extend(asked.drain(..).map(|pe| format!("{pe} says nothing")));
            }
        }
    }
    left_over
}
