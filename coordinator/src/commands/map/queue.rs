//! The queue of shards while a cluster runs: each PE runs the command on its own shards first, and then
//! on those of the PE with most bytes left, or of one that died. They are in a working folder that all PEs
//! share, or are moved.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use flitcast_node::channel::ChannelError;
use flitcast_node::timeout_stream::IdleTimeout;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, Run, ToPe};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::halt::Halt;
use super::joblog::JobLog;
use super::moving::Mover;
use super::remaining::Durations;
use super::task::{CommandFate, ShardTask, numbered};
use flitcast_cluster::launch::cluster::{Cluster, Heard};
use flitcast_cluster::observe::console::Console;
use flitcast_cluster::rounds::controller::LEFT;
use flitcast_cluster::text::words::last_words;

/// Time between two checks that all PEs with running commands are alive. Each death is reported as an
/// event; this covers events that do not arrive.
const LOOK: Duration = Duration::from_secs(1);

/// The word in a command that is replaced by the name of the shard.
const BRACES: &[u8] = b"{}";

/// The command, and the rules by which PEs run it.
pub struct Order {
    pub words: Vec<OsString>,
    /// Whether `{}` in a word is replaced by the name of the shard.
    pub has_braces: bool,
    pub work: PathBuf,
    /// Number of PEs, the root included.
    pub pes: u32,
    /// Time after which the command is killed, in nanoseconds; 0 for no limit.
    pub time_limit_ns: u64,
    /// Number of commands that each PE runs at once.
    pub jobs: usize,
    /// Number of times that a failed command is run again.
    pub retries: u32,
    pub halt: Halt,
    /// Whether all PEs share the working folder, so that each can run the command on any shard.
    pub is_shared: bool,
}

impl Order {
    /// Returns the words of the command on a shard.
    fn words_for(&self, task: &ShardTask) -> Vec<OsString> {
        let words = self.words.iter();
        match self.has_braces {
            true => words.map(|word| with_name(word, &task.name)).collect(),
            false => words.cloned().collect(),
        }
    }

    /// Returns the message to the PE that runs the command on a shard.
    fn run(&self, task: &ShardTask) -> Run {
        Run {
            words: self.words_for(task),
            work: self.work.clone(),
            pes: self.pes,
            time_limit_ns: self.time_limit_ns,
            shard: task.name.clone(),
            home: task.is_named.then_some(task.home),
            linked: task.is_named || self.has_braces,
        }
    }
}

/// Returns whether a word has a place for the name of a shard.
pub fn has_braces(word: &OsString) -> bool {
    find(word.as_bytes()).is_some()
}

fn find(text: &[u8]) -> Option<usize> {
    text.windows(BRACES.len()).position(|part| part == BRACES)
}

/// Replaces `{}` in a word by the name of a shard.
pub fn with_name(word: &OsStr, name: &OsStr) -> OsString {
    let (mut rest, mut out) = (word.as_bytes(), Vec::new());
    while let Some(at) = find(rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(name.as_bytes());
        rest = &rest[at + BRACES.len()..];
    }
    out.extend_from_slice(rest);
    OsString::from_vec(out)
}

/// The shards of a PE on which no command has begun.
#[derive(Default)]
struct Waiting {
    /// Indices of the tasks.
    tasks: VecDeque<usize>,
    bytes: u64,
}

/// The queue of all shards on one cluster.
pub struct Queue<'a> {
    cluster: &'a mut Cluster,
    console: &'a Console,
    order: &'a Order,
    tasks: &'a mut [ShardTask],
    /// The shards on which no command has begun, by the PE that received them.
    waiting: BTreeMap<PeId, Waiting>,
    /// The running commands of each PE: indices of the tasks, by the names of the shards.
    running: BTreeMap<PeId, BTreeMap<OsString, usize>>,
    /// Number of commands that have succeeded.
    done: usize,
    log: Option<&'a mut JobLog>,
    mover: &'a mut Mover,
    /// When the last command on each shard has begun.
    began: BTreeMap<usize, SystemTime>,
    /// The durations of the commands that have ended.
    durations: Durations,
    /// Whether no further command begins.
    is_halted: bool,
}

impl<'a> Queue<'a> {
    /// Creates the queue of all tasks that are due.
    pub fn new(
        cluster: &'a mut Cluster,
        console: &'a Console,
        order: &'a Order,
        tasks: &'a mut [ShardTask],
        log: Option<&'a mut JobLog>,
        mover: &'a mut Mover,
    ) -> Queue<'a> {
        let mut queue = Queue {
            done: tasks.iter().filter(|task| task.is_done()).count(),
            log,
            mover,
            began: BTreeMap::new(),
            cluster,
            console,
            order,
            tasks,
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            durations: Durations::default(),
            is_halted: false,
        };
        for index in 0..queue.tasks.len() {
            if queue.tasks[index].is_due(order.retries) {
                queue.of_home(index).push_back(index);
            }
        }
        queue
    }

    /// Runs all due tasks, until each has ended, or no PE is left that can run it, or `ends` is cancelled.
    /// Returns whether failures have halted the queue.
    pub async fn work_off(mut self, ends: &CancellationToken) -> bool {
        self.console
            .begin("map".to_owned(), self.tasks.len() as u64);
        self.show();
        loop {
            tokio::select! {
                biased;
                () = ends.cancelled() => {
                    self.kill_running("the command was ended by a signal to `flitcast map`");
                    return self.is_halted;
                }
                () = self.fill() => {}
            }
            self.begin_move();
            if self.running.is_empty() && !self.awaits_move() {
                return self.is_halted;
            }
            tokio::select! {
                // The next turn of the loop ends the commands.
                () = ends.cancelled() => {}
                heard = self.cluster.hear(Instant::now() + LOOK) => match heard {
                    Some((pe, heard)) => self.take(pe, heard),
                    None => {
                        self.lose_dead();
                        self.show();
                    }
                },
                (index, to, moved) = self.mover.ended() => self.moved(index, to, moved),
            }
            if self.is_halted && matches!(self.order.halt, Halt::Now(_)) {
                self.kill_running("the command was killed, because others failed (--halt)");
                return true;
            }
        }
    }

    /// Handles the end of all running commands, which the stop of the cluster kills.
    fn kill_running(&mut self, why: &str) {
        for index in std::mem::take(&mut self.running).into_values().flatten() {
            self.tasks[index.1].fate = CommandFate::Killed(why.to_owned());
        }
    }

    /// Handles the deaths of PEs with running commands.
    fn lose_dead(&mut self) {
        let dead = self.running.keys().copied();
        let dead: Vec<PeId> = dead.filter(|pe| !self.cluster.is_alive(*pe)).collect();
        for pe in dead {
            self.lose(pe, "is gone");
        }
    }

    /// Starts commands until every living PE runs as many as it may. All PEs get a first one before any
    /// gets a second one.
    async fn fill(&mut self) {
        if self.is_halted {
            return;
        }
        for slot in 0..self.order.jobs {
            if self.waiting.is_empty() {
                return;
            }
            for pe in self.cluster.pes() {
                let running = self.running.get(&pe).map_or(0, BTreeMap::len);
                if running > slot || !self.cluster.is_alive(pe) {
                    continue;
                }
                if let Some(index) = self.next(pe) {
                    self.start(pe, index).await;
                }
            }
        }
    }

    /// Takes the task that a PE runs next: one that it received, or else one of the PE with most bytes
    /// left.
    fn next(&mut self, pe: PeId) -> Option<usize> {
        let richest = || {
            let others = self.waiting.iter().filter(|_| self.order.is_shared);
            others.max_by_key(|(_, of)| of.bytes).map(|(pe, _)| *pe)
        };
        let home = match self.waiting.contains_key(&pe) {
            true => pe,
            false => richest()?,
        };
        let index = *self.waiting.get(&home)?.tasks.front()?;
        self.take_out(index);
        Some(index)
    }

    /// Removes a task from those that wait; returns whether it was one.
    fn take_out(&mut self, index: usize) -> bool {
        let task = &self.tasks[index];
        let Some(of_home) = self.waiting.get_mut(&task.home) else {
            return false;
        };
        let Some(place) = of_home.tasks.iter().position(|other| *other == index) else {
            return false;
        };
        of_home.tasks.remove(place);
        of_home.bytes -= task.shard_bytes;
        if of_home.tasks.is_empty() {
            self.waiting.remove(&task.home);
        }
        true
    }

    /// Begins to move a shard to the PE with fewest commands, if it has none to begin: the last one of a
    /// dead PE, or else of the PE with most bytes left. Until it has arrived it is still that PE's.
    fn begin_move(&mut self) {
        let running = |pe: &PeId| self.running.get(pe).map_or(0, BTreeMap::len);
        let is_free = |pe: &PeId| {
            let is_idle = self.cluster.is_alive(*pe) && running(pe) < self.order.jobs;
            is_idle && !self.waiting.contains_key(pe) && self.mover.is_free_for(*pe)
        };
        let to = self.cluster.pes().filter(is_free).min_by_key(running);
        let is_dead = |pe: &PeId| !self.cluster.is_alive(*pe);
        let homes = self.waiting.iter().filter(|_| !self.is_halted);
        let home = homes.max_by_key(|(pe, of)| (is_dead(pe), of.bytes));
        if let (Some(to), Some(&index)) = (to, home.and_then(|(_, of)| of.tasks.back())) {
            self.mover.begin(index, &self.tasks[index].name, to);
        }
    }

    /// Returns whether a shard without a living PE may soon be at another one.
    fn awaits_move(&self) -> bool {
        let to = self.mover.moves_to().filter(|_| !self.is_halted);
        !self.waiting.is_empty() && to.is_some_and(|to| self.cluster.is_alive(to))
    }

    /// Handles the end of a move.
    fn moved(&mut self, index: usize, to: PeId, moved: Result<(), String>) {
        if let Err(why) = moved {
            let shard = self.tasks[index].shown();
            let note = format!("{shard} cannot be moved to {to}: {why}");
            return self.console.note(&note);
        }
        // Otherwise the command has begun at the PE that had the shard.
        if self.cluster.is_alive(to) && self.take_out(index) {
            self.tasks[index].home = to;
            self.of_home(index).push_back(index);
        }
    }

    /// Counts the bytes of a task's shard at the PE that has it, and returns the queue of that PE, to which
    /// the caller adds the task.
    fn of_home(&mut self, index: usize) -> &mut VecDeque<usize> {
        let task = &self.tasks[index];
        let of_home = self.waiting.entry(task.home).or_default();
        of_home.bytes += task.shard_bytes;
        &mut of_home.tasks
    }

    async fn start(&mut self, pe: PeId, index: usize) {
        let task = &mut self.tasks[index];
        task.runs += 1;
        task.pe = pe;
        let run = self.order.run(task);
        self.began.insert(index, SystemTime::now());
        let of_pe = self.running.entry(pe).or_default();
        of_pe.insert(task.name.clone(), index);
        self.cluster.say(pe, ToPe::Run(run)).await;
    }

    /// Handles an event of a PE.
    fn take(&mut self, pe: PeId, heard: Heard) {
        let lost = match heard {
            Heard::Word(FromPe::Line { text, shard }) => {
                let is_named = self.tasks.first().is_some_and(|task| task.is_named);
                return match is_named || shard != numbered(pe) {
                    true => {
                        let shard = shard.to_string_lossy();
                        self.console.line_of_shard(&shard, pe, &text);
                    }
                    false => self.console.line_of(pe, &text),
                };
            }
            // Each time a PE answers, the estimate of the time left is renewed.
            Heard::Word(FromPe::Pong(_)) => return self.show(),
            Heard::Word(FromPe::Ran(ran)) => {
                if let Some(of_pe) = self.running.get_mut(&pe)
                    && let Some(index) = of_pe.remove(&ran.shard)
                {
                    if of_pe.is_empty() {
                        self.running.remove(&pe);
                    }
                    self.end(index, CommandFate::Ran(ran));
                }
                return;
            }
            Heard::Word(FromPe::Fault { reason, .. }) => reason,
            Heard::Word(other) => format!("sent an unexpected message: {}", other.kind()),
            Heard::Exited(exit, lines) => {
                format!("{exit}{}", last_words("; it last printed: ", &lines))
            }
            Heard::ChannelEnded(end) => match why_ended(self.cluster, pe, end) {
                Some(why) => why,
                // The end of its process is reported next.
                None => return self.cluster.give_up_on(pe),
            },
        };
        self.lose(pe, &lost);
    }

    /// Handles the death of a PE, which ends its commands.
    fn lose(&mut self, pe: PeId, why: &str) {
        self.cluster.give_up_on(pe);
        for (_, index) in self.running.remove(&pe).unwrap_or_default() {
            self.end(index, CommandFate::Lost(why.to_owned()));
        }
    }

    /// Handles the end of a command.
    fn end(&mut self, index: usize, fate: CommandFate) {
        let task = &mut self.tasks[index];
        task.fate = fate;
        self.done += usize::from(task.is_done());
        if let Some(ran) = task.ran() {
            self.durations.add(Duration::from_nanos(ran.took_ns));
        }
        self.note(index);
        let task = &self.tasks[index];
        let retries = self.order.retries;
        if let Some(why) = task.failure() {
            match task.is_due(retries) {
                true => {
                    let (subject, again) = (task.subject(), task.runs);
                    self.console.note(&format!(
                        "{subject}: {why}; running it again ({again} of {retries})"
                    ));
                    self.of_home(index).push_front(index);
                }
                false => self.is_halted = self.is_halted || self.has_failed_enough(),
            }
        }
        self.show();
    }

    /// Adds the end of a command to the log.
    fn note(&mut self, index: usize) {
        let began = self.began.remove(&index);
        let (Some(log), Some(began)) = (&mut self.log, began) else {
            return;
        };
        let task = &self.tasks[index];
        let words = self.order.words_for(task);
        if let Err(error) = log.add(task, began, &words) {
            self.console
                .note(&format!("--joblog: a line is missing: {error}"));
        }
    }

    /// Returns whether so many commands have failed that no further one begins.
    fn has_failed_enough(&self) -> bool {
        let (Halt::Soon(limit) | Halt::Now(limit)) = self.order.halt else {
            return false;
        };
        let retries = self.order.retries;
        let failed = |task: &&ShardTask| !task.is_done() && !task.is_due(retries);
        self.tasks.iter().filter(failed).count() >= limit as usize
    }

    fn show(&self) {
        let waiting = self.waiting.values().map(|of| of.tasks.len()).sum();
        let running = self.running.values().flat_map(BTreeMap::values);
        let running = running.filter_map(|index| self.began.get(index)?.elapsed().ok());
        let alive = self.cluster.pes().filter(|pe| self.cluster.is_alive(*pe));
        let slots = alive.count() * self.order.jobs;
        let left = self.durations.remaining(waiting, running, slots);
        self.console.done(self.done, self.tasks.len(), left);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_replaced_wherever_they_are() {
        let with = |word: &str| with_name(OsStr::new(word), OsStr::new("a b"));
        for (word, expected) in [
            ("{}", "a b"),
            ("x{}y{}", "xa bya b"),
            ("{{}}", "{a b}"),
            ("{ } {", "{ } {"),
            ("", ""),
        ] {
            assert_eq!(with(word), expected);
        }
    }
}
