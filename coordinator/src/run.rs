//! One request from beginning to end: a cluster is launched, its rounds conducted,
//! every process stopped, and what was half written removed.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use flitcast_node::payload;
use flitcast_proto::wire::control::Payload;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::timeout;

use crate::cluster::{Cluster, LogArgs};
use crate::conduct::conduct;
use crate::console::Console;
use crate::outcome::{Failure, Outcome};
use crate::request::Request;

/// After Ctrl-C, for a launch under way to come to its end: many times what it takes
/// where it does not hang.
const LAST_LAUNCH: Duration = Duration::from_secs(3);

/// How a run ended.
#[derive(Debug)]
pub enum Ended {
    /// All rounds are over.
    Done(Box<Outcome>),
    /// The cluster did not come up, or a round failed.
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

    async fn next(&mut self) {
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
) -> anyhow::Result<Ended> {
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
        conducted = conduct(&mut cluster, request, &console) => Some(conducted),
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
        Some(Ok(rounds)) => Ended::Done(Box::new(Outcome::new(launching, rounds))),
        Some(Err(failure)) => Ended::Failed(Box::new(failure)),
    })
}
