//! One request from beginning to end: launches a cluster, runs the rounds, stops every process, and
//! removes incomplete output.

use std::time::{Duration, Instant, SystemTime};

use anyhow::Context as _;
use flitcast_node::payload::{self, Others, Sweep};
use flitcast_proto::PeId;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::algorithms::method::Method;
use crate::job::model::Measurement;
use crate::job::request::Request;
use crate::launch::cluster::{Cluster, LaunchPlan};
use crate::observe::console::Console;
use crate::observe::emit::{RunGuard, emit};
use crate::observe::event::Event;
use crate::rounds::execution::{self, run_rounds};
use crate::rounds::learning;
use crate::rounds::outcome::{Failure, Outcome, Recorder};
use crate::site::running_cluster;
use crate::system::interrupts::{Interruption, Interrupts};
use crate::system::machine::DiskWaits;
use crate::text::pe_names;
use crate::text::units::Nanos;
use crate::tuning::ENDING;

#[derive(Debug)]
pub enum RunResult<T> {
    /// The run was successful.
    Done(T),
    /// The cluster was not launched, or an error occurred.
    Failed(Box<Failure>),
    /// A signal ended the command.
    Interrupted(Interrupted),
}

/// A run that a signal ended.
#[derive(Debug)]
pub struct Interrupted {
    pub signal: Interruption,
    /// The end of the processes of the PEs.
    pub processes: &'static str,
    /// Whether a second signal came before all processes had ended.
    pub is_urgent: bool,
    /// The state of the messages; `None` if it is unknown.
    pub failure: Option<Box<Failure>>,
}

impl Interrupted {
    /// Describes the end of a run of a request, without its messages.
    pub fn new(request: &Request, signal: Interruption) -> Interrupted {
        let placement = &request.site.placement;
        let processes = match () {
            () if placement.kept.is_some() => "the cluster stays up",
            () if placement.is_joined() => "every PE was told to leave",
            () => "every process was stopped",
        };
        Interrupted {
            signal,
            processes,
            is_urgent: false,
            failure: None,
        }
    }
}

/// The result on a launched cluster; `None` if the run was interrupted and its result is unknown.
pub type Conducted<'a, T> = Option<&'a Result<T, Failure>>;

/// Runs a request on a new cluster. The record from `recorder` is written before the first round,
/// so that it exists however the run ends. `is_over` returns whether the job of the run is over,
/// which PEs are notified of before they leave.
///
/// # Errors
///
/// Returns an error if incomplete output cannot be removed.
pub async fn run(
    request: &Request,
    logs: &[String],
    interrupts: &mut Interrupts,
    recorder: Recorder<'_>,
    is_over: impl FnOnce(Conducted<'_, Box<Outcome>>) -> bool,
) -> anyhow::Result<RunResult<Box<Outcome>>> {
    let ended = rounds(request, logs, interrupts, recorder, is_over).await?;
    if request.is_dry_run() {
        return Ok(ended);
    }
    // The cost model has the files of whole messages.
    if let RunResult::Done(outcome) = &ended
        && outcome.rounds.bytes == outcome.rounds.whole
    {
        learning::learn(request, outcome);
    }
    if let (Some(file), Some(_)) = (&request.site.cluster, &request.site.placement.kept) {
        running_cluster::note(file, &noted(request, &ended));
    }
    Ok(ended)
}

/// Runs a request without learning from its durations.
pub async fn rounds(
    request: &Request,
    logs: &[String],
    interrupts: &mut Interrupts,
    recorder: Recorder<'_>,
    is_over: impl FnOnce(Conducted<'_, Box<Outcome>>) -> bool,
) -> anyhow::Result<RunResult<Box<Outcome>>> {
    // The processes start without work on files, unless the program is not in memory.
    let waits = DiskWaits::begin();
    let done = async |cluster: &mut Cluster, console: &Console, launching, ends: &_| {
        let share = waits.share();
        let rounds = run_rounds(cluster, request, console, ends, (recorder, share)).await?;
        Ok(Box::new(Outcome::new(
            launching,
            &request.site.tree,
            request.way.operation,
            rounds,
            cluster.hosts(),
        )))
    };
    let pes: Vec<PeId> = request.site.tree.pes().collect();
    on_a_cluster(request, &pes, logs, interrupts, done, is_over).await
}

/// `scatter by fdf`.
fn what(way: &Method) -> String {
    let operation = way.operation.collective().name();
    format!("{operation} by {}", way.algorithm())
}

/// Returns the record of a run on a persistent cluster.
fn noted(request: &Request, ended: &RunResult<Box<Outcome>>) -> running_cluster::Round {
    let outcome = match ended {
        RunResult::Done(outcome) => match outcome.measured {
            Some(measured) => format!("done in {}", Nanos(measured.median)),
            None => "done".to_owned(),
        },
        RunResult::Failed(failure) => failure.cause.clone(),
        RunResult::Interrupted(_) => "interrupted".to_owned(),
    };
    running_cluster::Round {
        at: SystemTime::now(),
        what: what(match ended {
            RunResult::Done(outcome) => &outcome.rounds.decisions.way,
            _ => &request.way,
        }),
        rounds: request.rounds,
        outcome,
    }
}

/// Measures the edges and clocks of a new cluster; `budget` is for each edge.
pub async fn measure(
    request: &Request,
    logs: &[String],
    interrupts: &mut Interrupts,
    budget: Duration,
) -> anyhow::Result<RunResult<Measurement>> {
    let done = async |cluster: &mut Cluster, console: &Console, _, ends: &_| {
        execution::measure(cluster, request, console, ends, budget).await
    };
    let pes: Vec<PeId> = request.site.tree.pes().collect();
    on_a_cluster(request, &pes, logs, interrupts, done, |_| true).await
}

/// Launches a cluster of these PEs, calls `done`, and stops the cluster. `done` also gets the
/// duration of the launch, and a token that requests its end; `is_over` is as in [`run`].
///
/// # Errors
///
/// Returns an error if incomplete output cannot be removed.
pub async fn on_a_cluster<T>(
    request: &Request,
    pes: &[PeId],
    logs: &[String],
    interrupts: &mut Interrupts,
    done: impl AsyncFnOnce(&mut Cluster, &Console, Duration, &CancellationToken) -> Result<T, Failure>,
    is_over: impl FnOnce(Conducted<'_, T>) -> bool,
) -> anyhow::Result<RunResult<T>> {
    pe_names::set(request.site.placement.names());
    let _used = match (&request.site.cluster, &request.site.placement.kept) {
        (Some(file), Some(_)) => running_cluster::take(file, &what(&request.way))?,
        _ => None,
    };
    let console = Console::of_stderr();
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
    let mut cluster = match launch(request, plan, &console, interrupts).await {
        Ok(cluster) => cluster,
        Err(ended) => return Ok(ended),
    };
    emit(Event::Launched {
        pid: &|pe| Some(cluster.register(pe)?.pid),
        hosts: &cluster.hosts(),
    });
    let launching = began.elapsed();
    tracing::info!(pes = pes.len(), ?launching, "launched");
    let id = cluster.id();
    let ends = CancellationToken::new();
    let done = done(&mut cluster, &console, launching, &ends);
    let (conducted, interruption, is_patient) = until_interrupted(done, &ends, interrupts).await;
    console.clear();
    emit(Event::Stopping);
    let mut is_urgent = !is_patient;
    let enough = async {
        if is_patient {
            interrupts.next().await;
            is_urgent = true;
        }
    };
    cluster.stop(is_over(conducted.as_ref()), enough).await;
    sweep(request, id, false).context("cannot remove what was half written")?;
    if interruption.is_some() {
        emit(Event::Abandoned);
    }
    Ok(match (conducted, interruption) {
        (conducted, Some(signal)) => RunResult::Interrupted(Interrupted {
            is_urgent,
            failure: conducted.and_then(Result::err).map(Box::new),
            ..Interrupted::new(request, signal)
        }),
        (Some(Ok(done)), None) => RunResult::Done(done),
        (Some(Err(failure)), None) => RunResult::Failed(Box::new(failure)),
        // Without an interruption, the result is awaited.
        (None, None) => anyhow::bail!("a run has ended without a result"),
    })
}

/// Launches a cluster, or returns the end of the run without one.
async fn launch<T>(
    request: &Request,
    plan: LaunchPlan<'_>,
    console: &Console,
    interrupts: &mut Interrupts,
) -> Result<Cluster, RunResult<T>> {
    let given_up = CancellationToken::new();
    let mut launch = std::pin::pin!(Cluster::launch(plan, console, &given_up));
    let launched = tokio::select! {
        launched = &mut launch => launched,
        interruption = interrupts.next() => {
            emit(Event::Interrupted);
            // Processes that were started are stopped actively.
            given_up.cancel();
            // The launch may just have succeeded.
            if let Ok(cluster) = launch.await {
                cluster.stop(false, another(interrupts)).await;
            }
            return Err(RunResult::Interrupted(Interrupted::new(request, interruption)));
        }
    };
    launched.map_err(|error| {
        emit(Event::Failed {
            kind: "launch",
            pe: error.pes().first().copied(),
            cause: &error.to_string(),
        });
        RunResult::Failed(Box::new(Failure::of_launch(request, &error)))
    })
}

/// Removes what runs that have ended left half written in the output of a request, and what the run
/// with this id left, unless the output is on other hosts. Nothing else may use an exclusive output.
pub fn sweep(request: &Request, run: u64, is_exclusive: bool) -> anyhow::Result<()> {
    let payload = &request.messages.payload;
    let Some(files) = payload.files() else {
        return Ok(());
    };
    let is_elsewhere = request.site.placement.is_elsewhere() || payload.is_apart();
    if is_elsewhere || request.is_dry_run() {
        return Ok(());
    }
    let how = Sweep {
        run,
        run_has_ended: true,
        job: request.messages.job_id,
        is_exclusive,
    };
    let is_of_pairs = request.way.operation.collective().is_of_pairs();
    let pes = Others::all(request.site.tree.len()).named(&files.output_names);
    let with_rows = is_of_pairs.then_some(pes);
    Ok(payload::sweep_output(&files.output, with_rows, &how)?)
}

/// Waits for the result of `done`. At the first signal it requests the end of `done`, and waits a little
/// longer, until a second signal. Returns the result of `done` unless it is not needed any more;
/// the first signal; and whether there was no second one.
async fn until_interrupted<T>(
    done: impl Future<Output = Result<T, Failure>>,
    ends: &CancellationToken,
    interrupts: &mut Interrupts,
) -> (Option<Result<T, Failure>>, Option<Interruption>, bool) {
    let mut done = std::pin::pin!(done);
    let interruption = tokio::select! {
        conducted = &mut done => return (Some(conducted), None, true),
        interruption = interrupts.next() => interruption,
    };
    tracing::info!("interrupted: once more kills whom it does not stop");
    emit(Event::Interrupted);
    ends.cancel();
    let (conducted, is_patient) = tokio::select! {
        conducted = timeout(ENDING, &mut done) => (conducted.ok(), true),
        _ = interrupts.next() => (None, false),
    };
    // The state of completed messages, and of those without a report, is read from the disk.
    (
        conducted.filter(Result::is_err),
        Some(interruption),
        is_patient,
    )
}

async fn another(interrupts: &mut Interrupts) {
    interrupts.next().await;
}
