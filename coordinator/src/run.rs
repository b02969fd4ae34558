//! One request from beginning to end: a cluster is launched, its rounds conducted,
//! every process stopped, and what was half written removed.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use flitcast_node::payload;
use flitcast_proto::wire::control::Payload;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::cluster::{Cluster, LogArgs};
use crate::conduct::{self, conduct};
use crate::console::Console;
use crate::model::Measurement;
use crate::outcome::{Failure, Outcome};
use crate::request::Request;

/// After Ctrl-C, for a launch under way to come to its end: many times what it takes
/// where it does not hang.
const LAST_LAUNCH: Duration = Duration::from_secs(3);

/// How a run ended.
#[derive(Debug)]
pub enum Ended<T> {
    /// All went well.
    Done(T),
    /// The cluster did not come up, or something failed.
    Failed(Box<Failure>),
    /// Ctrl-C, or SIGTERM.
    Interrupted,
}

/// Ctrl-C and SIGTERM, from when this is made: one that comes between two runs ends the
/// second.
#[derive(Debug)]
pub struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// From now on, they end nothing by themselves.
    pub fn new() -> anyhow::Result<Interrupts> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Interrupts {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Runs a request on a cluster of its own.
///
/// # Errors
///
/// What was half written could not be removed.
pub async fn run(
    request: &Request,
    logs: &LogArgs,
    interrupts: &mut Interrupts,
) -> anyhow::Result<Ended<Box<Outcome>>> {
    let done = async |cluster: &mut Cluster, console: &Console, launching| {
        let rounds = conduct(cluster, request, console).await?;
        Ok(Box::new(Outcome::new(launching, rounds)))
    };
    on_a_cluster(request, logs, interrupts, done).await
}

/// Measures the edges and clocks of a cluster of its own; `budget` is for each edge.
///
/// # Errors
///
/// The cluster did not come up.
pub async fn measure(
    request: &Request,
    logs: &LogArgs,
    interrupts: &mut Interrupts,
    budget: Duration,
) -> anyhow::Result<Ended<Measurement>> {
    let done = async |cluster: &mut Cluster, console: &Console, _| {
        conduct::measure(cluster, request, console, budget).await
    };
    on_a_cluster(request, logs, interrupts, done).await
}

/// Launches a cluster, has something done on it, and stops it. `done` also gets how
/// long launching took.
async fn on_a_cluster<T>(
    request: &Request,
    logs: &LogArgs,
    interrupts: &mut Interrupts,
    done: impl AsyncFnOnce(&mut Cluster, &Console, Duration) -> Result<T, Failure>,
) -> anyhow::Result<Ended<T>> {
    let console = Console::new();
    let began = Instant::now();
    let program = std::env::current_exe().context("cannot find the flitcast binary")?;
    let pes = request.tree.len();
    let mut launch = std::pin::pin!(Cluster::launch(
        &program,
        &request.placement,
        logs,
        &request.timeouts,
        &console
    ));
    let launched = tokio::select! {
        launched = &mut launch => launched,
        () = interrupts.next() => {
            // What is launched whole can be stopped in good order. Given up, it would be
            // killed, and for a moment still be there when this program is not.
            let stopped = async {
                if let Ok(cluster) = launch.await {
                    cluster.stop().await;
                }
            };
            tokio::select! {
                _ = timeout(LAST_LAUNCH, stopped) => {}
                () = interrupts.next() => {}
            }
            return Ok(Ended::Interrupted);
        }
    };
    let mut cluster = match launched {
        Ok(cluster) => cluster,
        Err(error) => return Ok(Ended::Failed(Box::new(Failure::of_launch(request, &error)))),
    };
    let launching = began.elapsed();
    tracing::info!(pes, ?launching, "launched");
    let id = cluster.id();
    let conducted = tokio::select! {
        conducted = done(&mut cluster, &console, launching) => Some(conducted),
        () = interrupts.next() => None,
    };
    console.clear();
    tokio::select! {
        () = cluster.stop() => {}
        // The second Ctrl-C: what was started dies with the cluster, at once.
        () = interrupts.next() => {}
    }
    if let Payload::Files { output, .. } = &request.payload {
        // What a killed PE left half written.
        payload::sweep(output, id).context("cannot remove what was half written")?;
    }
    Ok(match conducted {
        None => Ended::Interrupted,
        Some(Ok(done)) => Ended::Done(done),
        Some(Err(failure)) => Ended::Failed(Box::new(failure)),
    })
}
