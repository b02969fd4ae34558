//! The queue of shards while a cluster runs: each PE runs the command on its own shards first, and then
//! on those of the PE with most bytes left, or of one that died. They are in a working folder that all PEs
//! share, or are moved.
//!
//! When no shard waits, one whose command takes long is moved to an idle PE, too, which runs a second
//! command on it. The first of the two that succeeds counts, and the other one is ended.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::time::{Duration, SystemTime};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, ToPe};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::args::Map;
use super::joblog::JobLog;
use super::moving::Mover;
use super::order::Halt;
use super::remaining::Durations;
use super::task::{CommandFate, ShardTask, numbered};
use flitcast_cluster::launch::cluster::{Cluster, PeEvent};
use flitcast_cluster::observe::console::Console;
use flitcast_cluster::observe::emit::emit;
use flitcast_cluster::observe::event::{Event, MapEvent, ShardCounts};
use flitcast_cluster::rounds::controller::PeLoss;

/// Time between two checks that all PEs with running commands are alive. Each death is reported as an
/// event; this covers events that do not arrive.
const LOOK: Duration = Duration::from_secs(1);

/// The shards of a PE on which no command has begun.
#[derive(Default)]
struct Waiting {
    /// Indices of the tasks.
    tasks: VecDeque<usize>,
    bytes: u64,
}

struct Running {
    /// Index of the task.
    task: usize,
    /// When it began: for the log, and for durations.
    began: (SystemTime, Instant),
}

/// The queue of all shards on one cluster.
pub struct Queue<'a> {
    cluster: &'a mut Cluster,
    console: &'a Console,
    map: &'a Map,
    tasks: &'a mut [ShardTask],
    /// The shards on which no command has begun, by the PE that received them.
    waiting: BTreeMap<PeId, Waiting>,
    /// The running commands of each PE by the names of the shards.
    running: BTreeMap<PeId, BTreeMap<OsString, Running>>,
    /// The running commands that are to be ended, because another one on the shard has succeeded.
    obsolete: Vec<(PeId, OsString)>,
    /// Number of shards on which a command has succeeded.
    done: usize,
    /// Number of shards on which the command has failed for good.
    failed: usize,
    log: Option<&'a mut JobLog>,
    mover: &'a mut Mover,
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
        map: &'a Map,
        tasks: &'a mut [ShardTask],
        log: Option<&'a mut JobLog>,
        mover: &'a mut Mover,
    ) -> Queue<'a> {
        let mut queue = Queue {
            done: tasks.iter().filter(|task| task.is_done()).count(),
            failed: 0,
            log,
            mover,
            cluster,
            console,
            map,
            tasks,
            waiting: BTreeMap::new(),
            running: BTreeMap::new(),
            obsolete: Vec::new(),
            durations: Durations::default(),
            is_halted: false,
        };
        for index in 0..queue.tasks.len() {
            if queue.tasks[index].is_due(map.scatter.retries) {
                queue.of_home(index).push_back(index);
            } else if !queue.tasks[index].is_done() {
                queue.failed += 1;
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
                event = self.cluster.next_event(Instant::now() + LOOK) => match event {
                    Some((pe, event)) => self.handle_event(pe, event),
                    None => {
                        self.lose_dead();
                        self.show();
                    }
                },
                (index, to, moved) = self.mover.ended() => self.moved(index, to, moved),
            }
            if self.is_halted && matches!(self.map.args.faults.halt, Halt::Now(_)) {
                self.kill_running("the command was killed, because others failed (--halt)");
                return true;
            }
        }
    }

    /// Handles the end of all running commands, which the stop of the cluster kills.
    fn kill_running(&mut self, why: &str) {
        for (_, run) in std::mem::take(&mut self.running).into_values().flatten() {
            let task = &mut self.tasks[run.task];
            if !task.is_done() {
                task.fate = CommandFate::Killed(why.to_owned());
            }
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

    /// Ends obsolete commands, and starts others until every living PE runs as many as it may. All PEs get
    /// a first one before any gets a second one.
    async fn fill(&mut self) {
        while let Some((pe, shard)) = self.obsolete.pop() {
            self.cluster.send_command(pe, ToPe::EndRun { shard }).await;
        }
        if self.is_halted {
            return;
        }
        for slot in 0..self.map.args.jobs {
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
        let with_most_bytes = || {
            let others = self.waiting.iter().filter(|_| self.map.is_shared());
            others.max_by_key(|(_, of)| of.bytes).map(|(pe, _)| *pe)
        };
        let home = match self.waiting.contains_key(&pe) {
            true => pe,
            false => with_most_bytes()?,
        };
        let index = *self.waiting.get(&home)?.tasks.front()?;
        (!self.is_run_at(pe, index) && self.take_out(index)).then_some(index)
    }

    fn is_waiting(&self, index: usize) -> bool {
        let of_home = self.waiting.get(&self.tasks[index].home);
        of_home.is_some_and(|of_home| of_home.tasks.contains(&index))
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

    /// Returns whether a PE runs the command of a task.
    fn is_run_at(&self, pe: PeId, index: usize) -> bool {
        let of_pe = self.running.get(&pe);
        of_pe.is_some_and(|of_pe| of_pe.contains_key(&self.tasks[index].name))
    }

    /// Returns the PEs that run the command of a task.
    fn run_at(&self, index: usize) -> Vec<PeId> {
        let pes = self.running.keys().copied();
        pes.filter(|pe| self.is_run_at(*pe, index)).collect()
    }

    /// Begins to move a shard to the PE with fewest commands, if it has none to begin: the last one of a
    /// dead PE, or else of the PE with most bytes left, or else one whose command takes long. Until it has
    /// arrived it is still that PE's.
    fn begin_move(&mut self) {
        let running = |pe: &PeId| self.running.get(pe).map_or(0, BTreeMap::len);
        let is_free = |pe: &PeId| {
            let is_idle = self.cluster.is_alive(*pe) && running(pe) < self.map.args.jobs;
            is_idle && !self.waiting.contains_key(pe) && self.mover.is_free_for(*pe)
        };
        let to = self.cluster.pes().filter(is_free).min_by_key(running);
        let is_dead = |pe: &PeId| !self.cluster.is_alive(*pe);
        let homes = self.waiting.iter().filter(|_| !self.is_halted);
        let home = homes.max_by_key(|(pe, of)| (is_dead(pe), of.bytes));
        let waiting = home.and_then(|(_, of)| of.tasks.back().copied());
        let Some(to) = to else { return };
        if let Some(index) = waiting.or_else(|| self.straggler(to))
            && !self.is_run_at(to, index)
        {
            self.mover.begin(index, &self.tasks[index].name, to);
        }
    }

    /// Returns the shard whose only command so far has run longest at another PE than `to`, if that is
    /// at least twice the median of the commands that have ended.
    fn straggler(&self, to: PeId) -> Option<usize> {
        let least = (self.durations.median()? * 2).max(self.map.args.faults.speculate);
        let elsewhere = self.running.iter().filter(|(pe, _)| **pe != to);
        let runs = elsewhere.flat_map(|(_, of_pe)| of_pe.values());
        let is_first = |run: &&Running| {
            let task = &self.tasks[run.task];
            !self.is_halted && task.is_named && !task.has_second && !task.is_done()
        };
        let longest = runs.filter(is_first).min_by_key(|run| run.began.1)?;
        (longest.began.1.elapsed() >= least).then_some(longest.task)
    }

    /// Returns whether a shard without a living PE may soon be at another one.
    fn awaits_move(&self) -> bool {
        let to = self.mover.moves_to().filter(|_| !self.is_halted);
        !self.waiting.is_empty() && to.is_some_and(|to| self.cluster.is_alive(to))
    }

    fn moved(&mut self, index: usize, to: PeId, moved: Result<(), String>) {
        if let Err(why) = moved {
            let shard = self.tasks[index].shown();
            let note = format!("{shard} cannot be moved to {to}: {why}");
            return self.console.note(&note);
        }
        let pes = self.run_at(index);
        let is_second = !pes.is_empty() && !self.tasks[index].is_done();
        // Otherwise the command has ended meanwhile.
        if self.cluster.is_alive(to) && (self.take_out(index) || is_second) {
            let task = &mut self.tasks[index];
            (task.home, task.has_second) = (to, task.has_second || is_second);
            if is_second {
                let (shard, pe) = (task.shown(), pes[0]);
                self.console.note(&format!(
                    "{shard} takes long at {pe}: {to} runs it as well, and the first result counts"
                ));
            }
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
        let run = self.map.run_on(task);
        let began = (SystemTime::now(), Instant::now());
        let of_pe = self.running.entry(pe).or_default();
        of_pe.insert(task.name.clone(), Running { task: index, began });
        emit(Event::Map(MapEvent::Begins(pe, &task.shown())));
        self.show();
        self.cluster.send_command(pe, ToPe::Run(run)).await;
    }

    fn handle_event(&mut self, pe: PeId, event: PeEvent) {
        let lost = match event {
            PeEvent::Reply(FromPe::Line { text, shard }) => {
                let is_named = self.tasks.first().is_some_and(|task| task.is_named);
                let name = shard.to_string_lossy();
                return match is_named || shard != numbered(pe) {
                    true => self.console.line_of_shard(&name, pe, &text),
                    false => self.console.line_of(pe, &text),
                };
            }
            // Each time a PE answers, the estimate of the time left is renewed.
            PeEvent::Reply(FromPe::Pong(pong)) => {
                emit(Event::Map(MapEvent::Pong(pe, &pong)));
                return self.show();
            }
            PeEvent::Reply(FromPe::Ran(ran)) => {
                if let Some(of_pe) = self.running.get_mut(&pe)
                    && let Some(run) = of_pe.remove(&ran.shard)
                {
                    if of_pe.is_empty() {
                        self.running.remove(&pe);
                    }
                    self.end(pe, &run, CommandFate::Ran(ran));
                }
                return;
            }
            PeEvent::Reply(FromPe::Fault { reason, .. }) => reason,
            PeEvent::Reply(other) => format!("sent an unexpected message: {}", other.kind()),
            PeEvent::Exited(exit, last_words) => {
                let how = exit.to_string();
                PeLoss::Exited { how, last_words }.to_string()
            }
            PeEvent::ChannelEnded(end) => match PeLoss::of_channel(end) {
                PeLoss::Lifeless(idle) => idle.to_string(),
                // The end of its process is reported next.
                _ if self.cluster.joined_from(pe).is_none() => return self.cluster.give_up_on(pe),
                lost => lost.to_string(),
            },
        };
        self.lose(pe, &lost);
    }

    /// Handles the death of a PE, which ends its commands.
    fn lose(&mut self, pe: PeId, why: &str) {
        self.cluster.give_up_on(pe);
        for (_, run) in self.running.remove(&pe).unwrap_or_default() {
            self.end(pe, &run, CommandFate::Lost(why.to_owned()));
        }
    }

    fn end(&mut self, pe: PeId, run: &Running, fate: CommandFate) {
        let index = run.task;
        emit(Event::Map(MapEvent::Ended(pe, &self.tasks[index].shown())));
        if self.tasks[index].is_done() {
            // The log has its end already.
            return self.show();
        }
        if fate.is_success() {
            self.done += 1;
            self.take_out(index);
            self.end_others(index, pe);
        }
        let task = &mut self.tasks[index];
        (task.pe, task.fate) = (pe, fate);
        if let Some(ran) = task.ran() {
            self.durations.add(Duration::from_nanos(ran.took_ns));
        }
        self.note(index, run.began.0);
        let task = &self.tasks[index];
        let (subject, retries) = (task.subject(), self.map.scatter.retries);
        if let Some(why) = task.failure() {
            if self.is_waiting(index) || !self.run_at(index).is_empty() {
                let note = format!("{subject}: {why}; another PE runs it as well");
                self.console.note(&note);
            } else if task.is_due(retries) {
                let again = task.runs - u32::from(task.has_second);
                self.console.note(&format!(
                    "{subject}: {why}; running it again ({again} of {retries})"
                ));
                self.of_home(index).push_front(index);
            } else {
                self.failed += 1;
                self.is_halted |= matches!(self.map.args.faults.halt, Halt::Soon(limit) | Halt::Now(limit)
                    if self.failed >= limit as usize);
            }
        }
        self.show();
    }

    /// Ends the commands on a shard at other PEs than `first`, which has succeeded. The line of each is
    /// before the one of that in the log, where the last one of a shard counts.
    fn end_others(&mut self, index: usize, first: PeId) {
        for pe in self.run_at(index) {
            let task = &mut self.tasks[index];
            let why = format!("{first} was first");
            (task.pe, task.fate) = (pe, CommandFate::Killed(why));
            let name = task.name.clone();
            if let Some(run) = self.running.get(&pe).and_then(|of_pe| of_pe.get(&name)) {
                self.note(index, run.began.0);
            }
            self.obsolete.push((pe, name));
        }
    }

    /// Adds the end of a command to the log.
    fn note(&mut self, index: usize, began: SystemTime) {
        let Some(log) = &mut self.log else {
            return;
        };
        let task = &self.tasks[index];
        let words = self.map.words_for(task);
        if let Err(error) = log.add(task, began, &words) {
            let note = format!("--joblog: a line is missing: {error}");
            self.console.note(&note);
        }
    }

    fn show(&self) {
        let waiting = self.waiting.values().map(|of| of.tasks.len()).sum();
        let running = self.running.values().flat_map(BTreeMap::values);
        let running = running.map(|run| run.began.1.elapsed());
        let alive = self.cluster.pes().filter(|pe| self.cluster.is_alive(*pe));
        let slots = alive.count() * self.map.args.jobs;
        let left = self.durations.remaining(waiting, running, slots);
        self.console.done(self.done, self.tasks.len(), left);
        let (done, failed) = (self.done, self.failed);
        emit(Event::Map(MapEvent::Shards(ShardCounts {
            waiting,
            running: self.tasks.len().saturating_sub(waiting + done + failed),
            done,
            failed,
        })));
    }
}
