//! `flitcast map`: scatters shards, runs a command on each, and gathers the results. These are three
//! runs, each on its own cluster, with a working folder between them.
//!
//! `retry` contains the scatter and the gather; the node crate contains the execution of a command.

mod args;
mod report;
mod run;
mod work;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::Run;

use crate::launch::log_args::LogArgs;
use crate::options::format::Format;
use crate::render::ending::FAILED;
use crate::retry::{self, Concluded, Story, Undertaking};
use crate::rounds::outcome::{Failure, Outcome};
use crate::rounds::run::{Ended, Interrupted};
use crate::system::interrupts::Interrupts;
use crate::text::stderr;
pub use args::{Map, MapArgs};
use run::{CommandFate, ShardTask};

/// The result of a map.
#[derive(Debug)]
pub struct Mapped {
    /// The tasks of the PEs that were to get a shard, by PE.
    pub tasks: Vec<ShardTask>,
    /// The last run of the scatter.
    pub scatter: Box<Outcome>,
    /// The total time of the commands.
    pub running: Duration,
    /// The gather, if there was something to gather.
    pub gather: Option<Box<Outcome>>,
    /// Results that were not gathered, with the reasons.
    pub left_behind: BTreeMap<PeId, String>,
    /// Retry reports of the scatter and of the gather.
    pub stories: [Story; 2],
}

/// A reason to end early.
enum Cut {
    /// A signal asked the command to end.
    Interrupted(Interrupted),
    /// The scatter or the gather failed as a whole.
    Failed(Box<Failure>, Box<Story>),
}

/// Runs the map, prints its result, and removes everything else.
///
/// # Errors
///
/// Returns an error if the working folder could not be removed.
pub async fn run(map: &Map, logs: &LogArgs) -> anyhow::Result<ExitCode> {
    let mut interrupts = Interrupts::new()?;
    let mut gone = Vec::new();
    // Held until the folder is removed or kept.
    let restricted = work::restrict(map).await;
    let mapped = match &restricted {
        Ok(_lock) => go(map, logs, &mut interrupts, &mut gone).await,
        Err(error) => Err(anyhow::anyhow!("{error:#}")),
    };
    let cleared = match map.keeps_work() {
        true => {
            let work = map.work.display();
            stderr::note(format_args!("the working folder is kept: {work}"));
            Ok(())
        }
        false => work::clear(map, &gone, logs, &mut interrupts).await,
    };
    let (printed, code) = match mapped? {
        Ok(mapped) => {
            complain(&mapped);
            let printed = match map.format() {
                Format::Json => report::json(map, &mapped),
                _ => report::table(map, &mapped),
            };
            let code = match mapped.is_complete() {
                true => ExitCode::SUCCESS,
                false => ExitCode::from(FAILED),
            };
            (printed, code)
        }
        Err(Cut::Interrupted(mut interrupted)) => {
            // In the working folder, which is removed.
            interrupted.failure = None;
            stderr::note(crate::render::ending::interrupted_note(&interrupted));
            (String::new(), interrupted.signal.exit_code())
        }
        Err(Cut::Failed(failure, story)) => {
            stderr::error(&failure);
            for line in story.last_words() {
                stderr::note(line);
            }
            let printed = match map.format() {
                Format::Json => crate::render::json::failure_json(&failure, None, &story),
                _ => String::new(),
            };
            (printed, crate::render::ending::failed(&failure))
        }
    };
    crate::render::ending::write_out(printed.as_bytes())?;
    cleared?;
    Ok(code)
}

/// Logs the tasks that failed.
fn complain(mapped: &Mapped) {
    for line in report::complaints(mapped) {
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

/// Executes the three runs. `gone` receives the PEs that died and are not started again.
async fn go(
    map: &Map,
    logs: &LogArgs,
    interrupts: &mut Interrupts,
    gone: &mut Vec<PeId>,
) -> anyhow::Result<Result<Mapped, Cut>> {
    let is_joined = map.scatter.site.placement.is_joined();
    let scatter = Undertaking::new(map.scatter.clone()).unrecorded();
    let scattered = retry::run(scatter, logs, interrupts).await?;
    let (scatter, scattered) = match over(scattered) {
        Ok(over) => over,
        Err(Cut::Failed(mut failure, story)) => {
            // In the working folder, which is removed.
            failure.keeps_files = false;
            return Ok(Err(Cut::Failed(failure, story)));
        }
        Err(cut) => return Ok(Err(cut)),
    };
    let mut tasks: Vec<ShardTask> = scattered
        .delivered
        .iter()
        .map(|&(pe, bytes)| ShardTask::new(pe, bytes))
        .collect();
    let order = Run {
        words: map.command().to_vec(),
        work: map.work.clone(),
        pes: map.scatter.site.tree.len() as u32,
        time_limit_ns: map.time_limit_ns(),
    };
    if is_joined {
        let dead = scattered
            .story
            .retries
            .iter()
            .flat_map(|retry| &retry.left_out);
        gone.extend(dead.map(|(pe, _)| *pe));
    }
    let began = Instant::now();
    let request = scattered.request.clone();
    match run::run(&request, &order, &mut tasks, logs, interrupts).await? {
        Ended::Interrupted(signal) => return Ok(Err(Cut::Interrupted(signal))),
        Ended::Failed(failure) => return Ok(Err(Cut::Failed(failure, Box::default()))),
        Ended::Done(dead) => gone.extend(dead),
    }
    let running = began.elapsed();
    let mut mapped = Mapped {
        tasks,
        scatter,
        running,
        gather: None,
        left_behind: BTreeMap::new(),
        stories: Default::default(),
    };
    for lost in &scattered.story.undelivered {
        let mut task = ShardTask::new(lost.delivery.row, lost.bytes);
        task.fate = CommandFate::Lost("died before it had its shard".to_owned());
        mapped.tasks.push(task);
    }
    mapped.tasks.sort_by_key(|task| task.pe);
    let [first, second] = &mut mapped.stories;
    *first = scattered.story;
    if !mapped.tasks.iter().any(ShardTask::is_done) {
        return Ok(Ok(mapped));
    }
    let request = map.gather().map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("the results cannot be gathered: {}", faults.join("; "))
    })?;
    let why = |pe: &PeId| (*pe, "it died before".to_owned());
    let dead = gone.iter().map(why).collect();
    let gather = Undertaking::new(request).unrecorded().without(dead);
    let (outcome, gathered) = match over(retry::run(gather, logs, interrupts).await?) {
        Ok(over) => over,
        Err(cut) => {
            complain(&mapped);
            return Ok(Err(cut));
        }
    };
    let done = mapped.tasks.iter().filter(|task| task.is_done());
    let arrived = |pe: PeId| gathered.delivered.iter().any(|(there, _)| *there == pe);
    let left = done.filter(|task| !arrived(task.pe));
    let why = "its result was not gathered".to_owned();
    mapped.left_behind = left.map(|task| (task.pe, why.clone())).collect();
    *second = gathered.story;
    mapped.gather = Some(outcome);
    Ok(Ok(mapped))
}

/// Returns the outcome of a scatter or a gather that succeeded.
fn over(concluded: Concluded) -> Result<(Box<Outcome>, Over), Cut> {
    let Concluded {
        ended,
        request,
        story,
        delivered,
    } = concluded;
    match ended {
        Ended::Interrupted(signal) => Err(Cut::Interrupted(signal)),
        Ended::Failed(failure) => Err(Cut::Failed(failure, Box::new(story))),
        Ended::Done(outcome) => Ok((
            outcome,
            Over {
                request,
                story,
                delivered,
            },
        )),
    }
}

/// The parts of a successful run that the next one needs.
struct Over {
    request: crate::job::request::Request,
    story: Story,
    delivered: Vec<(PeId, u64)>,
}

impl Mapped {
    /// Returns whether the result of this task is in the output.
    pub fn has_result(&self, task: &ShardTask) -> bool {
        task.is_done() && !self.left_behind.contains_key(&task.pe)
    }

    /// Returns whether every shard has its result, with all that the command wrote.
    pub fn is_complete(&self) -> bool {
        let is_whole = |task: &ShardTask| task.is_done() && task.not_taken().is_empty();
        self.left_behind.is_empty() && self.tasks.iter().all(is_whole)
    }
}
