//! Runs the command at every PE that has a shard; again if it fails and retries are left, and in a new
//! process if a PE dies.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use flitcast_node::channel::ChannelError;
use flitcast_node::timeout_stream::IdleTimeout;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{End, FromPe, Ran, Run, ToPe};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use flitcast_cluster::job::request::Request;
use flitcast_cluster::launch::cluster::{Cluster, Heard};
use flitcast_cluster::launch::log_args::LogArgs;
use flitcast_cluster::observe::console::Console;
use flitcast_cluster::retry::RetryReport;
use flitcast_cluster::rounds::controller::LEFT;
use flitcast_cluster::rounds::outcome::Outcome;
use flitcast_cluster::rounds::run::{RunResult, on_a_cluster};
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::text::words::{last_words, signal_named};

/// Time between two checks that all PEs with running commands are alive. Each death is reported as an
/// event; this covers events that do not arrive.
const LOOK: Duration = Duration::from_secs(1);

/// A PE's shard, and the end of the command on it.
#[derive(Debug)]
pub struct ShardTask {
    pub pe: PeId,
    /// The length of the shard as a message.
    pub shard_bytes: u64,
    /// The number of times that the command was run.
    pub runs: u32,
    /// The last end of the command.
    pub fate: CommandFate,
}

/// The end of a command.
#[derive(Debug)]
pub enum CommandFate {
    Waiting,
    Ran(Ran),
    /// The PE could not run the command to its end, or never received its shard; the text is the
    /// reason.
    Lost(String),
}

impl ShardTask {
    /// Creates a task that has not been run.
    pub fn new(pe: PeId, shard_bytes: u64) -> ShardTask {
        ShardTask {
            pe,
            shard_bytes,
            runs: 0,
            fate: CommandFate::Waiting,
        }
    }

    /// Returns whether the command succeeded.
    pub fn is_done(&self) -> bool {
        matches!(&self.fate, CommandFate::Ran(ran) if ran.end == End::Exited(0))
    }

    /// Returns the last end of the command, if there is one.
    pub fn ran(&self) -> Option<&Ran> {
        match &self.fate {
            CommandFate::Ran(ran) => Some(ran),
            CommandFate::Waiting | CommandFate::Lost(_) => None,
        }
    }

    /// Returns the number of bytes of the result.
    pub fn wrote_bytes(&self) -> u64 {
        self.ran().map_or(0, |ran| ran.wrote_bytes)
    }

    /// Returns the entries that the command wrote and that are not in its result, with the reasons.
    pub fn not_taken(&self) -> &[String] {
        self.ran().map_or(&[], |ran| &ran.not_taken)
    }

    /// Returns whether the command is to be run again.
    fn is_due(&self, retries: u32) -> bool {
        !self.is_done() && self.runs <= retries
    }

    /// Describes the failure, if there is one, as a predicate of the PE.
    pub fn failure(&self) -> Option<String> {
        match &self.fate {
            _ if self.is_done() => None,
            CommandFate::Waiting => Some("was not run".to_owned()),
            CommandFate::Lost(why) => Some(why.clone()),
            CommandFate::Ran(ran) => Some(match &ran.end {
                End::Exited(code) => format!("the command ended with exit status {code}"),
                End::Signalled(signal) => {
                    format!("the command was killed by {}", signal_named(*signal))
                }
                End::Failed(why) => why.clone(),
            }),
        }
    }
}

/// The result of a map.
#[derive(Debug)]
pub struct Mapped {
    /// The tasks of the PEs that were to get a shard, by PE.
    pub tasks: Vec<ShardTask>,
    pub scatter: Box<Outcome>,
    /// The total time of the commands.
    pub running: Duration,
    /// The gather, if there was something to gather.
    pub gather: Option<Box<Outcome>>,
    /// Results that were not gathered, with the reasons.
    pub left_behind: BTreeMap<PeId, String>,
    /// Retry reports of the scatter and of the gather.
    pub stories: [RetryReport; 2],
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

/// Runs the command for all tasks, each as often as its retries permit. Returns the PEs that are dead
/// and cannot be started again.
///
/// # Errors
///
/// Returns an error if partial output could not be removed.
pub async fn run(
    request: &Request,
    order: &Run,
    tasks: &mut [ShardTask],
    logs: &LogArgs,
    interrupts: &mut Interrupts,
) -> anyhow::Result<RunResult<BTreeSet<PeId>>> {
    let retries = request.retries;
    let mut gone = BTreeSet::new();
    loop {
        let due: Vec<PeId> = due(tasks, retries).map(|task| task.pe).collect();
        if due.is_empty() {
            return Ok(RunResult::Done(gone));
        }
        // PEs that join are present even without a task.
        let pes = match request.site.placement.is_joined() {
            true => request
                .site
                .tree
                .pes()
                .filter(|pe| !gone.contains(pe))
                .collect(),
            false => due.clone(),
        };
        let done = async |cluster: &mut Cluster, console: &Console, _, ends: &CancellationToken| {
            tokio::select! {
                () = work_off(cluster, console, order, tasks, retries) => {}
                () = ends.cancelled() => {}
            }
            Ok(())
        };
        match on_a_cluster(request, &pes, logs, interrupts, done, |_| true).await? {
            RunResult::Interrupted(signal) => return Ok(RunResult::Interrupted(signal)),
            RunResult::Done(()) => {}
            RunResult::Failed(failure) => {
                let at_fault = |pe: &PeId| failure.failed_pes.contains(pe);
                let all = !due.iter().any(at_fault);
                for task in tasks.iter_mut().filter(|task| due.contains(&task.pe)) {
                    if all || at_fault(&task.pe) {
                        task.runs += 1;
                        task.fate = CommandFate::Lost(failure.cause_of(task.pe).to_owned());
                    }
                }
                gone.extend(failure.failed_pes.iter().filter(|pe| !due.contains(pe)));
            }
        }
        if request.site.placement.is_joined() {
            let lost = |task: &&ShardTask| {
                matches!(task.fate, CommandFate::Lost(_)) && !task.is_due(retries)
            };
            gone.extend(tasks.iter().filter(lost).map(|task| task.pe));
        }
    }
}

fn due(tasks: &mut [ShardTask], retries: u32) -> impl Iterator<Item = &mut ShardTask> {
    tasks.iter_mut().filter(move |task| task.is_due(retries))
}

/// Runs all due tasks on the PEs of a cluster, until each has ended or its PE is dead.
async fn work_off(
    cluster: &mut Cluster,
    console: &Console,
    order: &Run,
    tasks: &mut [ShardTask],
    retries: u32,
) {
    let mut running = BTreeSet::new();
    for task in due(tasks, retries) {
        task.runs += 1;
        running.insert(task.pe);
        cluster.say(task.pe, ToPe::Run(order.clone())).await;
    }
    console.begin("map".to_owned(), tasks.len() as u64);
    let done = |tasks: &[ShardTask]| tasks.iter().filter(|task| task.is_done()).count();
    console.done(done(tasks), tasks.len());
    while !running.is_empty() {
        let Some((pe, heard)) = cluster.hear(Instant::now() + LOOK).await else {
            running.retain(|&pe| {
                let lives = cluster.is_alive(pe);
                if !lives {
                    set(tasks, pe, CommandFate::Lost("is gone".to_owned()));
                }
                lives
            });
            continue;
        };
        let fate = match heard {
            Heard::Word(FromPe::Line(line)) => {
                console.line_of(pe, &line);
                continue;
            }
            Heard::Word(FromPe::Pong(_)) => continue,
            Heard::Word(FromPe::Ran(ran)) => CommandFate::Ran(ran),
            Heard::Word(FromPe::Fault { reason, .. }) => CommandFate::Lost(reason),
            Heard::Word(other) => {
                CommandFate::Lost(format!("sent an unexpected message: {}", other.kind()))
            }
            Heard::Exited(exit, lines) => CommandFate::Lost(format!(
                "{exit}{}",
                last_words("; its last words: ", &lines)
            )),
            Heard::ChannelEnded(end) => match why_ended(cluster, pe, end) {
                Some(why) => CommandFate::Lost(why),
                // The end of its process is reported next.
                None => {
                    cluster.give_up_on(pe);
                    continue;
                }
            },
        };
        if !running.remove(&pe) {
            continue;
        }
        if matches!(fate, CommandFate::Lost(_)) {
            cluster.give_up_on(pe);
        }
        set(tasks, pe, fate);
        let Some(task) = tasks.iter_mut().find(|task| task.pe == pe) else {
            continue;
        };
        if let Some(why) = task.failure().filter(|_| task.is_due(retries)) {
            let (again, of) = (task.runs, retries);
            console.note(&format!("{pe}: {why}; running it again ({again} of {of})"));
            if cluster.is_alive(pe) {
                task.runs += 1;
                running.insert(pe);
                cluster.say(pe, ToPe::Run(order.clone())).await;
            }
        }
        console.done(done(tasks), tasks.len());
    }
}

fn set(tasks: &mut [ShardTask], pe: PeId, fate: CommandFate) {
    if let Some(task) = tasks.iter_mut().find(|task| task.pe == pe) {
        task.fate = fate;
    }
}

/// Returns the reason why the channel of a PE has ended, unless the end of its process gives a better
/// one.
fn why_ended(cluster: &Cluster, pe: PeId, end: Option<ChannelError>) -> Option<String> {
    let lifeless = match &end {
        Some(ChannelError::Io(error)) => IdleTimeout::of(error),
        _ => None,
    };
    match (lifeless, end) {
        (Some(lifeless), _) => Some(lifeless.to_string()),
        _ if cluster.joined_from(pe).is_none() => None,
        (None, Some(error)) => Some(format!("is gone: its channel broke: {error}")),
        (None, None) => Some(format!("is gone: {LEFT}")),
    }
}
