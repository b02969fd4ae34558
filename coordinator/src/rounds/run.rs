//! One request from beginning to end: a cluster is launched, its rounds conducted,
//! every process stopped, and what was half written removed.

use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use flitcast_node::payload;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::Payload;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::job::model::Measurement;
use crate::job::request::Request;
use crate::launch::cluster::{Cluster, LaunchPlan};
use crate::launch::log_args::LogArgs;
use crate::observe::console::Console;
use crate::observe::event::Event;
use crate::observe::tell::{RunGuard, tell};
use crate::rounds::conduct::{self, conduct};
use crate::rounds::learning;
use crate::rounds::outcome::{Failure, Outcome};
use crate::site::kept;
use crate::text::units::Nanos;

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

/// What came of a cluster that was launched; `None` if it was interrupted.
pub type Conducted<'a, T> = Option<&'a Result<T, Failure>>;

/// Runs a request on a cluster of its own. From what came of it, `is_over` knows whether the
/// undertaking that it belongs to is over, which PEs are told before they leave.
///
/// # Errors
///
/// What was half written could not be removed.
pub async fn run(
    request: &Request,
    logs: &LogArgs,
    interrupts: &mut Interrupts,
    is_over: impl FnOnce(Conducted<'_, Box<Outcome>>) -> bool,
) -> anyhow::Result<Ended<Box<Outcome>>> {
    let ended = rounds(request, logs, interrupts, is_over).await?;
    if let Ended::Done(outcome) = &ended {
        learning::learn(request, outcome);
    }
    if let (Some(file), Some(_)) = (&request.site.cluster, &request.site.placement.kept) {
        kept::note(file, &noted(request, &ended));
    }
    Ok(ended)
}

/// Runs a request of which nothing is to be learned: what the rounds took is not kept.
///
/// # Errors
///
/// As [`run`].
pub async fn rounds(
    request: &Request,
    logs: &LogArgs,
    interrupts: &mut Interrupts,
    is_over: impl FnOnce(Conducted<'_, Box<Outcome>>) -> bool,
) -> anyhow::Result<Ended<Box<Outcome>>> {
    let done = async |cluster: &mut Cluster, console: &Console, launching| {
        let rounds = conduct(cluster, request, console).await?;
        Ok(Box::new(Outcome::new(
            launching,
            &request.site.tree,
            request.way.operation,
            rounds,
        )))
    };
    let pes: Vec<PeId> = request.site.tree.pes().collect();
    on_a_cluster(request, &pes, logs, interrupts, done, is_over).await
}

/// `scatter by fdf`.
fn what(request: &Request) -> String {
    let operation = request.way.operation.name();
    format!("{operation} by {}", request.way.algorithm())
}

/// What is remembered of a run on a cluster that is up.
fn noted(request: &Request, ended: &Ended<Box<Outcome>>) -> kept::Round {
    let outcome = match ended {
        Ended::Done(outcome) => match outcome.measured {
            Some(measured) => format!("done in {}", Nanos(measured.median)),
            None => "done".to_owned(),
        },
        Ended::Failed(failure) => failure.cause.clone(),
        Ended::Interrupted => "interrupted".to_owned(),
    };
    kept::Round {
        at: SystemTime::now(),
        what: what(request),
        rounds: request.rounds,
        outcome,
    }
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
    let pes: Vec<PeId> = request.site.tree.pes().collect();
    on_a_cluster(request, &pes, logs, interrupts, done, |_| true).await
}

/// Launches a cluster of these PEs, has something done on it, and stops it. `done` also gets
/// how long launching took; `is_over` is as in [`run`].
///
/// # Errors
///
/// What was half written could not be removed.
pub async fn on_a_cluster<T>(
    request: &Request,
    pes: &[PeId],
    logs: &LogArgs,
    interrupts: &mut Interrupts,
    done: impl AsyncFnOnce(&mut Cluster, &Console, Duration) -> Result<T, Failure>,
    is_over: impl FnOnce(Conducted<'_, T>) -> bool,
) -> anyhow::Result<Ended<T>> {
    let _used = match (&request.site.cluster, &request.site.placement.kept) {
        (Some(file), Some(_)) => kept::take(file, &what(request))?,
        _ => None,
    };
    let console = Console::new();
    let began = Instant::now();
    let program = std::env::current_exe().context("cannot find the flitcast binary")?;
    let plan = LaunchPlan {
        program: &program,
        pes,
        tree: &request.site.tree,
        placement: &request.site.placement,
        guard: &request.site.guard,
        again: request.again,
        require_all: true,
        commands: request.commands,
        logs,
        timeouts: &request.timeouts,
    };
    let _run = RunGuard::launching(request);
    let given_up = CancellationToken::new();
    let mut launch = std::pin::pin!(Cluster::launch(plan, &console, &given_up));
    let launched = tokio::select! {
        launched = &mut launch => launched,
        () = interrupts.next() => {
            tell(Event::Interrupted);
            // What was started is not left to die by itself.
            given_up.cancel();
            // It may have just come up.
            if let Ok(cluster) = launch.await {
                cluster.stop(false, interrupts.next()).await;
            }
            return Ok(Ended::Interrupted);
        }
    };
    let mut cluster = match launched {
        Ok(cluster) => cluster,
        Err(error) => {
            tell(Event::Failed {
                kind: "launch",
                pe: error.pe(),
                cause: &error.to_string(),
            });
            return Ok(Ended::Failed(Box::new(Failure::of_launch(request, &error))));
        }
    };
    tell(Event::Launched {
        pid: &|pe| Some(cluster.register(pe)?.pid),
    });
    let launching = began.elapsed();
    tracing::info!(pes = pes.len(), ?launching, "launched");
    let id = cluster.id();
    let conducted = tokio::select! {
        conducted = done(&mut cluster, &console, launching) => Some(conducted),
        () = interrupts.next() => {
            tracing::info!("interrupted: once more kills whom it does not stop");
            tell(Event::Interrupted);
            None
        }
    };
    console.clear();
    tell(Event::Stopping);
    cluster
        .stop(is_over(conducted.as_ref()), interrupts.next())
        .await;
    // On hosts of their own, the PEs' files are not here.
    if let (Payload::Files { output, .. }, false) = (
        &request.messages.payload,
        request.site.placement.is_elsewhere(),
    ) {
        // What a killed PE left half written.
        let (operation, tree) = (request.way.operation, &request.site.tree);
        let rows = tree.pes().filter(|_| operation.is_of_pairs());
        let rows = rows.map(|pe| payload::destination(output, pe));
        for folder in rows.chain([output.clone()]) {
            let swept = payload::sweep(&folder, id);
            swept.context("cannot remove what was half written")?;
        }
    }
    Ok(match conducted {
        None => {
            tell(Event::Abandoned);
            Ended::Interrupted
        }
        Some(Ok(done)) => Ended::Done(done),
        Some(Err(failure)) => Ended::Failed(Box::new(failure)),
    })
}
