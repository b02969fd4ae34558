//! The three runs of a map: the scatter of the shards, the commands, and the gather of the results.

use std::time::Instant;

use anyhow::Context as _;
use flitcast_node::task::WorkLock;
use flitcast_proto::PeId;

use super::args::Map;
use super::complaints::shard_errors;
use super::shards::Shards;
use super::task::{CommandFate, Mapped, ShardTask};
use super::{results, run};
use flitcast_cluster::retry::{self, ResumableJob, RetryReport};
use flitcast_cluster::rounds::run::{Interrupted, RunResult};
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::stderr;

/// The end of a map, and the retry report of the scatter or gather that failed.
type Ended = (RunResult<Box<Mapped>>, RetryReport);

/// Executes the three runs. `dead_pes` receives the PEs that died and are not started again.
pub async fn execute(
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
    let delivered = scattered.delivered.iter();
    let undelivered = story.undelivered.iter();
    let undelivered = undelivered.map(|lost| (lost.delivery.row, lost.bytes, false));
    let sent = delivered.map(|&(pe, bytes)| (pe, bytes, true));
    let sent: Vec<_> = sent.chain(undelivered).collect();
    let tree = &map.scatter.site.tree;
    let tasks = map.shards.tasks(tree, &sent);
    let is_delivered = |task: &ShardTask| matches!(task.fate, CommandFate::Waiting);
    let (mut tasks, lost): (Vec<_>, Vec<_>) = tasks.into_iter().partition(is_delivered);
    let began = Instant::now();
    let order = map.order();
    let joblog = map.joblog()?;
    let (dead, interrupted) = run::run(
        &scattered.request,
        &order,
        &mut tasks,
        joblog,
        logs,
        interrupts,
    )
    .await?;
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
        results::place(map, &mut mapped, dead_pes, logs, interrupts).await?;
    }
    Ok((RunResult::Done(mapped), RetryReport::default()))
}

/// Prints the errors of the shards and the notes on retries.
pub fn print_errors(map: &Map, mapped: &Mapped) {
    for line in shard_errors(map, mapped) {
        stderr::error(line);
    }
    for note in mapped
        .stories
        .iter()
        .filter_map(|story| story.note.as_ref())
    {
        stderr::note(format_args!("  retry: {note}"));
    }
}

fn by_signal(signal: Interrupted) -> Ended {
    (RunResult::Interrupted(signal), RetryReport::default())
}
