//! One request from beginning to end: a cluster is launched, its rounds conducted,
//! every process stopped, and what was half written removed.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use flitcast_node::payload;
use flitcast_proto::wire::control::Payload;
use tokio::signal::unix::{SignalKind, signal};

use crate::cluster::{Cluster, LogArgs};
use crate::conduct::{self, conduct};
use crate::console::Console;
use crate::model::Measurement;
use crate::outcome::{Failure, Outcome};
use crate::request::Request;

/// How a run ended.
#[derive(Debug)]
pub enum Ended<T> {
    /// All went well.
    Done(T),
    /// Something failed.
    Failed(Failure),
    /// Ctrl-C, or SIGTERM.
    Interrupted,
}

/// Runs a request on a cluster of its own.
///
/// # Errors
///
/// The cluster did not come up, or what was half written could not be removed.
pub async fn run(request: &Request, logs: &LogArgs) -> anyhow::Result<Ended<Box<Outcome>>> {
    on_a_cluster(request, logs, async |cluster, console, launching| {
        let rounds = conduct(cluster, request, console).await?;
        Ok(Box::new(Outcome::new(launching, rounds)))
    })
    .await
}

/// Measures the edges and clocks of a cluster of its own; `budget` is for each edge.
///
/// # Errors
///
/// The cluster did not come up.
pub async fn measure(
    request: &Request,
    logs: &LogArgs,
    budget: Duration,
) -> anyhow::Result<Ended<Measurement>> {
    on_a_cluster(request, logs, async |cluster, console, _| {
        conduct::measure(cluster, request, console, budget).await
    })
    .await
}

/// Launches a cluster, has something done on it, and stops it. `done` also gets how
/// long launching took.
async fn on_a_cluster<T>(
    request: &Request,
    logs: &LogArgs,
    done: impl AsyncFnOnce(&mut Cluster, &Console, Duration) -> Result<T, Failure>,
) -> anyhow::Result<Ended<T>> {
    let console = Console::new();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let began = Instant::now();
    let program = std::env::current_exe().context("cannot find the flitcast binary")?;
    let pes = request.tree.len();
    let launched = tokio::select! {
        launched = Cluster::launch(&program, pes, logs, &console) => launched,
        _ = interrupt.recv() => return Ok(Ended::Interrupted),
        _ = terminate.recv() => return Ok(Ended::Interrupted),
    };
    let mut cluster = launched.context("the cluster did not come up")?;
    let launching = began.elapsed();
    tracing::info!(pes, ?launching, "launched");
    let id = cluster.id();
    let conducted = tokio::select! {
        conducted = done(&mut cluster, &console, launching) => Some(conducted),
        _ = interrupt.recv() => None,
        _ = terminate.recv() => None,
    };
    console.clear();
    tokio::select! {
        () = cluster.stop() => {}
        // The second Ctrl-C: what was started dies with the cluster, at once.
        _ = interrupt.recv() => {}
    }
    if let Payload::Files { output, .. } = &request.payload {
        // What a killed PE left half written.
        payload::sweep(output, id).context("cannot remove what was half written")?;
    }
    Ok(match conducted {
        None => Ended::Interrupted,
        Some(Ok(done)) => Ended::Done(done),
        Some(Err(failure)) => Ended::Failed(failure),
    })
}
