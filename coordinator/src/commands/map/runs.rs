//! The execution of a map, from the protected working folder to the printed result: the scatter of the shards, the
//! commands, again if they fail and retries are left and in a new process if a PE dies, and the gather of the results.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use flitcast_node::task::WorkLock;
use flitcast_proto::PeId;
use tokio_util::sync::CancellationToken;

use super::args::Map;
use super::moving::Mover;
use super::queue::Queue;
use super::shards::Shards;
use super::task::{CommandFate, Mapped, ShardTask};
use super::{folders, report};
use crate::render::exit::{FAILED, REFUSED, report_end};
use flitcast_cluster::job::request::Request;
use flitcast_cluster::launch::cluster::Cluster;
use flitcast_cluster::observe::console::Console;
use flitcast_cluster::options::format::Format;
use flitcast_cluster::retry::{self, ResumableJob, RetryReport};
use flitcast_cluster::rounds::run::{Interrupted, RunResult, on_a_cluster};
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::stderr;

/// Runs the map, prints its result, and removes everything else.
///
/// # Errors
///
/// Returns an error if the working folder could not be removed.
pub async fn run(map: &Map, logs: &[String]) -> anyhow::Result<ExitCode> {
    let mut interrupts = Interrupts::new()?;
    let mut map = map.clone();
    if map.scatter.site.placement.is_elsewhere() && !map.args.spread {
        let looked = folders::look(&mut map, logs, &mut interrupts).await?;
        if let Err(faults) = looked {
            faults.iter().for_each(stderr::error);
            return Ok(ExitCode::from(REFUSED));
        }
    }
    let map = &map;
    let mut dead_pes = Vec::new();
    // Held until the folder is removed or kept.
    let restricted = folders::restrict(map).await;
    let mapped = match &restricted {
        Ok(_lock) => execute(map, logs, &mut interrupts, &mut dead_pes).await,
        Err(error) => Err(anyhow::anyhow!("{error:#}")),
    };
    let cleared = folders::clear_gathered(map).await;
    let cleared = cleared.and(match map.args.keep_work {
        true => {
            let work = map.work.display();
            stderr::note(format_args!("the working folder is kept: {work}"));
            Ok(())
        }
        false => folders::clear(map, &dead_pes, logs, &mut interrupts).await,
    });
    let (mut ended, story) = mapped?;
    if let RunResult::Interrupted(interrupted) = &mut ended {
        // In the working folder, which is removed.
        interrupted.failure = None;
    }
    let code = report_end(ended, map.args.format, &story, |mapped| {
        print_errors(map, mapped);
        if let Some(interrupted) = &mapped.interrupted {
            stderr::note(report::interrupted_note(map, mapped, interrupted));
            if !mapped.is_gathered {
                return (String::new(), interrupted.signal.exit_code());
            }
        }
        let printed = match map.args.format {
            Format::Json => report::json(map, mapped),
            _ => report::table(map, mapped),
        };
        let code = match &mapped.interrupted {
            Some(interrupted) => interrupted.signal.exit_code(),
            None if mapped.is_complete() => ExitCode::SUCCESS,
            None => ExitCode::from(FAILED),
        };
        (printed, code)
    })?;
    cleared?;
    Ok(code)
}

/// The end of a map, and the retry report of the scatter or gather that failed.
type Ended = (RunResult<Box<Mapped>>, RetryReport);

/// Executes the three runs. `dead_pes` receives the PEs that died and are not started again.
async fn execute(
    map: &Map,
    logs: &[String],
    interrupts: &mut Interrupts,
    dead_pes: &mut Vec<PeId>,
) -> anyhow::Result<Ended> {
    if matches!(&map.shards, Shards::Named { left, .. } if left.is_empty()) {
        return Ok((RunResult::Done(Box::default()), RetryReport::default()));
    }
    let scatter = ResumableJob::new(map.scatter.clone()).unrecorded();
    let scattered = retry::run(scatter, logs, interrupts).await?;
    let story = scattered.story;
    let scatter = match scattered.ended {
        RunResult::Done(outcome) => outcome,
        RunResult::Failed(mut failure) => {
            // In the working folder, which is removed.
            failure.keeps_files = false;
            return Ok((RunResult::Failed(failure), story));
        }
        RunResult::Interrupted(signal) => return Ok(by_signal(signal)),
    };
    if map.scatter.site.placement.is_joined() {
        let retries = story.retries.iter();
        let dead = retries.flat_map(|retry| &retry.left_out);
        dead_pes.extend(dead.map(|(pe, _)| *pe));
    }
    let undelivered = story.undelivered.iter();
    let undelivered = undelivered.map(|lost| (lost.delivery.row, lost.bytes, false));
    let sent = scattered
        .delivered
        .iter()
        .map(|&(pe, bytes)| (pe, bytes, true));
    let sent: Vec<_> = sent.chain(undelivered).collect();
    let tasks = map.shards.tasks(&map.scatter.site.tree, &sent);
    let is_delivered = |task: &ShardTask| matches!(task.fate, CommandFate::Waiting);
    let (mut tasks, lost): (Vec<_>, Vec<_>) = tasks.into_iter().partition(is_delivered);
    let began = Instant::now();
    let (dead, interrupted) =
        run_commands(map, &scattered.request, &mut tasks, logs, interrupts).await?;
    dead_pes.extend(dead);
    let is_urgent = interrupted.as_ref().is_some_and(|it| it.is_urgent);
    tasks.extend(lost);
    tasks.sort_by_key(|task| task.seq);
    let mapped = Box::new(Mapped {
        tasks,
        scatter: Some(scatter),
        running: began.elapsed(),
        gather: None,
        is_gathered: false,
        stories: [story, RetryReport::default()],
        interrupted,
    });
    let has_any = |task: &ShardTask| task.is_done() || task.has_output();
    match mapped.tasks.iter().any(has_any) && !is_urgent {
        true => gather(map, mapped, dead_pes, logs, interrupts).await,
        false => Ok((RunResult::Done(mapped), RetryReport::default())),
    }
}

/// Gathers the results of the tasks that are done and the output of those that failed, without the PEs
/// in `dead_pes`.
async fn gather(
    map: &Map,
    mut mapped: Box<Mapped>,
    dead_pes: &[PeId],
    logs: &[String],
    interrupts: &mut Interrupts,
) -> anyhow::Result<Ended> {
    // The output of a failed command of an earlier run may be in the output.
    let is_direct = mapped.tasks.iter().all(ShardTask::is_message) && !map.args.replaces();
    let request = map
        .gather(is_direct)
        .map_err(|faults| anyhow::anyhow!("the results cannot be gathered: {faults}"))?;
    // Held until the folder is removed: the next map removes it if this one is killed.
    let _lock = match is_direct || map.scatter.site.placement.is_elsewhere() {
        true => None,
        false => Some(WorkLock::take(&map.gathered).context("cannot lock the folder of results")?),
    };
    let why = |pe: &PeId| (*pe, "it died before".to_owned());
    let dead = dead_pes.iter().map(why).collect();
    let gather = ResumableJob::new(request).unrecorded().without(dead);
    let gathered = retry::run(gather, logs, interrupts).await?;
    mapped.gather = match gathered.ended {
        RunResult::Done(outcome) => Some(outcome),
        RunResult::Failed(failure) => {
            print_errors(map, &mapped);
            return Ok((RunResult::Failed(failure), gathered.story));
        }
        RunResult::Interrupted(signal) if signal.is_urgent => {
            print_errors(map, &mapped);
            return Ok(by_signal(signal));
        }
        // The results that have arrived count.
        RunResult::Interrupted(signal) => {
            mapped.interrupted = Some(signal);
            None
        }
    };
    mapped.is_gathered = true;
    let arrived = |pe: PeId| gathered.delivered.iter().any(|(there, _)| *there == pe);
    for task in &mut mapped.tasks {
        if (task.is_done() || task.has_output()) && !arrived(task.pe) {
            task.left_behind = Some("its result was not gathered".to_owned());
        }
    }
    mapped.stories[1] = gathered.story;
    if !is_direct {
        folders::place(map, &mut mapped, dead_pes, logs, interrupts).await?;
    }
    Ok((RunResult::Done(mapped), RetryReport::default()))
}

fn print_errors(map: &Map, mapped: &Mapped) {
    for line in report::shard_errors(map, mapped) {
        stderr::error(line);
    }
    for note in mapped.stories.iter().filter_map(|it| it.note.as_ref()) {
        stderr::note(format_args!("  retry: {note}"));
    }
}

fn by_signal(signal: Interrupted) -> Ended {
    (RunResult::Interrupted(signal), RetryReport::default())
}

/// Runs the command for all tasks, each as often as its retries permit, until failures or a signal halt
/// the queue. Returns the PEs that are dead and cannot be started again, and the end by a signal.
///
/// # Errors
///
/// Returns an error if partial output could not be removed.
async fn run_commands(
    map: &Map,
    request: &Request,
    tasks: &mut [ShardTask],
    logs: &[String],
    interrupts: &mut Interrupts,
) -> anyhow::Result<(BTreeSet<PeId>, Option<Interrupted>)> {
    let mut joblog = map.joblog()?;
    let retries = map.scatter.retries;
    let mut dead_pes = BTreeSet::new();
    let mut is_halted = false;
    let mut interrupted = None;
    loop {
        let due = tasks.iter().filter(|task| task.is_due(retries));
        let due: BTreeSet<PeId> = due.map(|task| task.home).collect();
        if due.is_empty() || is_halted || interrupted.is_some() {
            return Ok((dead_pes, interrupted));
        }
        // PEs that join are present even without a task.
        let pes: Vec<PeId> = match request.site.placement.is_joined() {
            true => {
                let all = request.site.tree.pes();
                all.filter(|pe| !dead_pes.contains(pe)).collect()
            }
            false => due.iter().copied().collect(),
        };
        let done = async |cluster: &mut Cluster, console: &Console, _, ends: &CancellationToken| {
            let are_movable = tasks.iter().all(|task| task.is_named);
            let mut mover = Mover::new(request, are_movable, logs);
            let log = joblog.as_mut();
            let queue = Queue::new(cluster, console, map, tasks, log, &mut mover);
            is_halted = queue.work_off(ends).await;
            mover.stop().await;
            Ok(())
        };
        match on_a_cluster(request, &pes, logs, interrupts, done, |_| true).await? {
            RunResult::Interrupted(signal) => interrupted = Some(signal),
            RunResult::Done(()) => {}
            RunResult::Failed(failure) => {
                let at_fault = |pe: &PeId| failure.failed_pes.contains(pe);
                let all = !due.iter().any(at_fault);
                for task in tasks.iter_mut().filter(|task| task.is_due(retries)) {
                    if all || at_fault(&task.home) {
                        task.runs += 1;
                        task.fate = CommandFate::Lost(failure.cause_of(task.home).to_owned());
                    }
                }
                dead_pes.extend(failure.failed_pes.iter().filter(|pe| !due.contains(pe)));
            }
        }
        if request.site.placement.is_joined() {
            let lost = |task: &&ShardTask| {
                matches!(task.fate, CommandFate::Lost(_)) && !task.is_due(retries)
            };
            dead_pes.extend(tasks.iter().filter(lost).map(|task| task.pe));
            // Their other shards are lost with them.
            let is_left =
                |task: &&mut ShardTask| task.is_due(retries) && dead_pes.contains(&task.home);
            for task in tasks.iter_mut().filter(is_left) {
                task.runs = retries + 1;
                task.fate = CommandFate::Lost("is gone".to_owned());
            }
        }
    }
}
