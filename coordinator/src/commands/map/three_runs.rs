//! The three runs of a map: the scatter of the shards, the commands, and the gather of the results.

use std::collections::BTreeMap;
use std::time::Instant;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::Run;

use super::args::Map;
use super::report::complaints;
use super::run::{self, CommandFate, Mapped, ShardTask};
use flitcast_cluster::launch::log_args::LogArgs;
use flitcast_cluster::retry::{self, ResumableJob, RetryReport};
use flitcast_cluster::rounds::run::{Interrupted, RunResult};
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::stderr;

/// The end of a map, and the retry report of the scatter or gather that failed.
type Ended = (RunResult<Box<Mapped>>, RetryReport);

/// Executes the three runs. `gone` receives the PEs that died and are not started again.
pub async fn execute(
    map: &Map,
    logs: &LogArgs,
    interrupts: &mut Interrupts,
    gone: &mut Vec<PeId>,
) -> anyhow::Result<Ended> {
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
        RunResult::Interrupted(signal) => return Ok(interrupted(signal)),
    };
    if map.scatter.site.placement.is_joined() {
        let retries = story.retries.iter();
        let dead = retries.flat_map(|retry| &retry.left_out);
        gone.extend(dead.map(|(pe, _)| *pe));
    }
    let shards = scattered.delivered.iter();
    let mut tasks: Vec<ShardTask> = shards
        .map(|&(pe, bytes)| ShardTask::new(pe, bytes))
        .collect();
    let order = Run {
        words: map.args.command.clone(),
        work: map.work.clone(),
        pes: map.scatter.site.tree.len() as u32,
        time_limit_ns: map.time_limit_ns(),
    };
    let began = Instant::now();
    match run::run(&scattered.request, &order, &mut tasks, logs, interrupts).await? {
        RunResult::Interrupted(signal) => return Ok(interrupted(signal)),
        RunResult::Failed(failure) => {
            return Ok((RunResult::Failed(failure), RetryReport::default()));
        }
        RunResult::Done(dead) => gone.extend(dead),
    }
    let running = began.elapsed();
    for lost in &story.undelivered {
        let mut task = ShardTask::new(lost.delivery.row, lost.bytes);
        task.fate = CommandFate::Lost("died before it had its shard".to_owned());
        tasks.push(task);
    }
    tasks.sort_by_key(|task| task.pe);
    let mapped = Box::new(Mapped {
        tasks,
        scatter,
        running,
        gather: None,
        left_behind: BTreeMap::new(),
        stories: [story, RetryReport::default()],
    });
    match mapped.tasks.iter().any(ShardTask::is_done) {
        true => gather(map, mapped, gone, logs, interrupts).await,
        false => Ok((RunResult::Done(mapped), RetryReport::default())),
    }
}

/// Gathers the results of the tasks that are done, without the PEs that are `gone`.
async fn gather(
    map: &Map,
    mut mapped: Box<Mapped>,
    gone: &[PeId],
    logs: &LogArgs,
    interrupts: &mut Interrupts,
) -> anyhow::Result<Ended> {
    let request = map.gather().map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the results cannot be gathered: {}", faults.join("; "))
    })?;
    let why = |pe: &PeId| (*pe, "it died before".to_owned());
    let dead = gone.iter().map(why).collect();
    let gather = ResumableJob::new(request).unrecorded().without(dead);
    let gathered = retry::run(gather, logs, interrupts).await?;
    let outcome = match gathered.ended {
        RunResult::Done(outcome) => outcome,
        RunResult::Failed(failure) => {
            complain(&mapped);
            return Ok((RunResult::Failed(failure), gathered.story));
        }
        RunResult::Interrupted(signal) => {
            complain(&mapped);
            return Ok(interrupted(signal));
        }
    };
    let done = mapped.tasks.iter().filter(|task| task.is_done());
    let arrived = |pe: PeId| gathered.delivered.iter().any(|(there, _)| *there == pe);
    let left = done.filter(|task| !arrived(task.pe));
    let why = "its result was not gathered".to_owned();
    mapped.left_behind = left.map(|task| (task.pe, why.clone())).collect();
    mapped.stories[1] = gathered.story;
    mapped.gather = Some(outcome);
    Ok((RunResult::Done(mapped), RetryReport::default()))
}

/// Logs the tasks that failed.
pub fn complain(mapped: &Mapped) {
    for line in complaints(mapped) {
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

fn interrupted(signal: Interrupted) -> Ended {
    (RunResult::Interrupted(signal), RetryReport::default())
}
