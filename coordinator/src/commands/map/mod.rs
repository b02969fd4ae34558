//! `flitcast map`: shards are scattered, a command is run on each, and what it wrote is
//! gathered. Three runs, each on a cluster of its own, and a working folder between them.
//!
//! How a scatter and a gather go is nobody's business here, nor how a PE runs a command.

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
use crate::render::ending::{FAILED, INTERRUPTED};
use crate::retry::{self, Concluded, Story, Undertaking};
use crate::rounds::outcome::{Failure, Outcome};
use crate::rounds::run::{Ended, Interrupts};
use crate::text::printable::printable;
pub use args::{Map, MapArgs};
use run::{CommandFate, ShardTask};

/// What it came to.
#[derive(Debug)]
pub struct Mapped {
    /// By PE, those that were to have a shard.
    pub tasks: Vec<ShardTask>,
    /// The scatter, as it went in the end.
    pub scatter: Box<Outcome>,
    /// How long the commands took, all together.
    pub running: Duration,
    /// The gather, if there was something to gather.
    pub gather: Option<Box<Outcome>>,
    /// Results that were not gathered, and why.
    pub left_behind: BTreeMap<PeId, String>,
    /// What was said of the scatter's and the gather's retries.
    pub stories: [Story; 2],
}

/// What ends it before it is over.
enum Cut {
    /// Ctrl-C, or SIGTERM.
    Interrupted,
    /// The scatter or the gather failed as a whole.
    Failed(Box<Failure>, Story),
}

/// Does it, prints what came of it, and leaves nothing behind but that.
///
/// # Errors
///
/// What lay in the working folder could not be removed.
pub async fn run(map: &Map, logs: &LogArgs) -> anyhow::Result<ExitCode> {
    let mut interrupts = Interrupts::new()?;
    let mut gone = Vec::new();
    let mapped = match work::restrict(map) {
        Ok(()) => go(map, logs, &mut interrupts, &mut gone).await,
        Err(error) => Err(error),
    };
    let cleared = match map.keeps_work() {
        true => {
            eprintln!("the working folder is kept: {}", map.work.display());
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
        Err(Cut::Interrupted) => {
            eprintln!(
                "interrupted: every process was stopped; what had not fully arrived was removed"
            );
            (String::new(), ExitCode::from(INTERRUPTED))
        }
        Err(Cut::Failed(failure, story)) => {
            eprintln!("error: {}", printable(&failure));
            for line in story.last_words() {
                eprintln!("{}", printable(line));
            }
            let printed = match map.format() {
                Format::Json => crate::render::report::failure_json(&failure, None, &story),
                _ => String::new(),
            };
            (printed, crate::render::ending::failed(&failure))
        }
    };
    crate::render::ending::write_out(printed.as_bytes())?;
    cleared?;
    Ok(code)
}

/// Names those that failed.
fn complain(mapped: &Mapped) {
    for line in report::complaints(mapped) {
        eprintln!("{}", printable(line));
    }
}

/// The three runs. `gone` is who died and is not started anew.
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
        Ended::Interrupted => return Ok(Err(Cut::Interrupted)),
        Ended::Failed(failure) => return Ok(Err(Cut::Failed(failure, Story::default()))),
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

/// A scatter or a gather that ended well, if it did.
fn over(concluded: Concluded) -> Result<(Box<Outcome>, Over), Cut> {
    let Concluded {
        ended,
        request,
        story,
        delivered,
    } = concluded;
    match ended {
        Ended::Interrupted => Err(Cut::Interrupted),
        Ended::Failed(failure) => Err(Cut::Failed(failure, story)),
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

/// What is left of one that ended well.
struct Over {
    request: crate::job::request::Request,
    story: Story,
    delivered: Vec<(PeId, u64)>,
}

impl Mapped {
    /// Whether the result of this one is where it was asked for.
    pub fn has_result(&self, task: &ShardTask) -> bool {
        task.is_done() && !self.left_behind.contains_key(&task.pe)
    }

    /// Whether every shard has its result.
    pub fn is_complete(&self) -> bool {
        self.left_behind.is_empty() && self.tasks.iter().all(ShardTask::is_done)
    }
}
