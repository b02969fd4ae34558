//! One request from beginning to end: a cluster is launched, its rounds conducted,
//! every process stopped, and what was half written removed.

use std::time::Instant;

use anyhow::Context as _;
use flitcast_node::payload;
use flitcast_proto::wire::control::Payload;
use tokio::signal::unix::{SignalKind, signal};

use crate::cluster::{Cluster, LogArgs};
use crate::conduct::conduct;
use crate::console::Console;
use crate::outcome::{Failure, Outcome};
use crate::request::Request;

/// How a run ended.
#[derive(Debug)]
pub enum Ended {
    /// All rounds are over.
    Done(Box<Outcome>),
    /// A round failed.
    Failed(Failure),
    /// Ctrl-C, or SIGTERM.
    Interrupted,
}

/// Runs a request on a cluster of its own.
///
/// # Errors
///
/// The cluster did not come up, or what was half written could not be removed.
pub async fn run(request: &Request, logs: &LogArgs) -> anyhow::Result<Ended> {
    let console = Console::new();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let began = Instant::now();
    let program = std::env::current_exe().context("cannot find the flitcast binary")?;
    let pes = request.tree.len();
    let launched = tokio::select! {
        launched = Cluster::launch(&program, &request.placement, logs, &console) => launched,
        _ = interrupt.recv() => return Ok(Ended::Interrupted),
        _ = terminate.recv() => return Ok(Ended::Interrupted),
    };
    let mut cluster = launched.context("the cluster did not come up")?;
    let launching = began.elapsed();
    tracing::info!(pes, ?launching, "launched");
    let id = cluster.id();
    let conducted = tokio::select! {
        conducted = conduct(&mut cluster, request, &console) => Some(conducted),
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
        Some(Ok(rounds)) => Ended::Done(Box::new(Outcome::new(launching, rounds))),
        Some(Err(failure)) => Ended::Failed(failure),
    })
}
