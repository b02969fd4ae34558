//! Files of a predicted round: blocks that threads read before the network needs them, and write
//! after it. The threads share the cores with the PEs, and disks are shared by all their users.
//!
//! The work of a thread is a [`FileTask`]: steps that take a core or a disk, one after the other. A
//! disk keeps written data in memory up to a limit (Dubois et al., *Modeling the Linux page cache
//! for accurate simulation*, 2021); a sync waits for the disk.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use flitcast_proto::cost::{
    DIRECT_BUFFER_BYTES, LARGE_FILE_BYTES, SYNCED_ALONE, is_written_directly,
};
use flitcast_proto::items::Message;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::{Durability, MessageId, PeId, Tree};

use crate::cost::{FileCosts, Files, MadeOf};

/// Maximum number of steps in which the files of a block are created and synced; more steps would
/// be too short to matter.
const MOST_STEPS: f64 = 256.0;

/// The next step of a thread.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// Work of this number of nanoseconds on a core.
    Core(f64),
    /// Work of a disk: it is busy for `busy` nanoseconds and free for others during the following
    /// `wait`.
    Disk {
        /// Index of the disk.
        disk: usize,
        /// Nanoseconds of exclusive use.
        busy: f64,
        /// Further nanoseconds, in which others can use it.
        wait: f64,
    },
}

/// The work of a thread, and its purpose.
#[derive(Debug)]
pub(super) struct FileTask {
    pub at: PeId,
    pub steps: VecDeque<Step>,
    pub goal: TaskCompletion,
}

/// The result of a complete task.
#[derive(Clone, Copy, Debug)]
pub(super) enum TaskCompletion {
    /// The next block of the reading with this number is read.
    Read(u64),
    /// A block of M_i is written, and the next one can be.
    Written(MessageId),
    /// A message is durable and visible.
    Visible(Message),
}

/// A message that is read to be sent, once for each receiver of a static schedule.
#[derive(Debug)]
struct Reading {
    number: u64,
    message: Message,
    /// The receiver, as soon as the first block is taken.
    receiver: Option<PeId>,
    /// Bytes of its files that are not in memory.
    cold_bytes: u64,
    /// The end of the blocks that the network thread has taken.
    taken: u64,
    /// The end of the blocks that are read.
    read: u64,
}

#[derive(Debug)]
struct Writing {
    message: Message,
    /// Bytes in the block that is being filled.
    filled: u64,
    /// Bytes that were passed to the thread.
    given: u64,
    /// Whether a thread is writing.
    busy: bool,
}

/// The file work of a PE.
#[derive(Debug, Default)]
struct PeFileQueues {
    /// Messages to be sent that are not open yet.
    unopened: VecDeque<Message>,
    /// Open messages in sending order, and the number of all so far.
    opened: VecDeque<Reading>,
    readings: u64,
    /// The messages and receivers of which the first block is taken.
    begun: BTreeSet<(MessageId, PeId)>,
    /// Incoming messages: several if they arrive in parts.
    writing: Vec<Writing>,
    /// Tasks that begin when the block before them is written.
    behind: Vec<FileTask>,
    commits: usize,
}

impl PeFileQueues {
    /// Opens the next message, of which the first `read` bytes are read, and returns the number of the reading.
    fn open_next(&mut self, read: u64, made_of: &BTreeMap<MessageId, MadeOf>) -> Option<u64> {
        let message = self.unopened.pop_front()?;
        let cold_bytes = made_of.get(&message.id).map_or(0, |it| it.cold_bytes);
        Some(self.open(message, None, [cold_bytes, read]))
    }

    fn open(&mut self, message: Message, receiver: Option<PeId>, bytes: [u64; 2]) -> u64 {
        let [cold_bytes, read] = bytes;
        self.readings += 1;
        self.opened.push_back(Reading {
            number: self.readings,
            message,
            receiver,
            cold_bytes,
            taken: 0,
            read: read.min(message.bytes),
        });
        self.readings
    }

    /// Opens a message that was sent to others for one more receiver.
    fn open_again(&mut self, message: Message, to: PeId) -> Option<u64> {
        let mut receivers = self.begun.range((message.id, PeId(0))..);
        let is_begun = receivers.next().is_some_and(|(id, _)| *id == message.id);
        let is_new = is_begun && !self.begun.contains(&(message.id, to));
        let is_open = |it: &Reading| it.message == message && it.receiver == Some(to);
        (is_new && !self.opened.iter().any(is_open)).then(|| self.open(message, Some(to), [0, 0]))
    }

    /// Returns the state of a message that is written, and creates it if necessary.
    fn writing_of(&mut self, message: Message) -> &mut Writing {
        let mut all = self.writing.iter();
        let place = all.position(|writing| writing.message == message);
        let place = place.unwrap_or_else(|| {
            self.writing.push(Writing {
                message,
                filled: 0,
                given: 0,
                busy: false,
            });
            self.writing.len() - 1
        });
        &mut self.writing[place]
    }
}

/// The file work of all PEs.
#[derive(Debug)]
pub(super) struct FileThreads<'a> {
    files: &'a Files,
    /// For each message, parts included, the files that it is made of.
    made_of: BTreeMap<MessageId, MadeOf>,
    /// Bytes that cross an edge at once.
    piece: u64,
    queues: Vec<PeFileQueues>,
    /// For each disk, when it is free, and the bytes that are only in memory.
    free: Vec<f64>,
    dirty: Vec<f64>,
    /// Tasks to be started.
    pub begun: Vec<FileTask>,
}

impl<'a> FileThreads<'a> {
    /// Creates the state before the round: the first messages are open, and their first blocks
    /// read.
    pub fn new(
        files: &'a Files,
        tree: &Tree,
        schedules: &[PeSchedule],
        piece: u64,
    ) -> FileThreads<'a> {
        let queues_of = |schedule: &PeSchedule| PeFileQueues {
            unopened: schedule.sends.iter().copied().collect(),
            ..PeFileQueues::default()
        };
        let made_of = |message: &Message, schedule: &PeSchedule| {
            let (whole, _) = schedule.collective.whole(tree, message.id);
            let parts = u64::from(schedule.parts);
            let mut made_of = *files.made_of.get(whole.index())?;
            // Each file is counted in one of the parts, the one in which it ends.
            made_of.entries = made_of.entries.div_ceil(parts);
            made_of.cold_bytes /= parts;
            Some((message.id, made_of))
        };
        let sent = schedules.iter().flat_map(|schedule| {
            let sent = schedule.sends.iter();
            sent.filter_map(move |message| made_of(message, schedule))
        });
        let mut threads = FileThreads {
            files,
            made_of: sent.collect(),
            piece,
            queues: schedules.iter().map(queues_of).collect(),
            free: vec![0.0; files.disks.len()],
            dirty: vec![0.0; files.disks.len()],
            begun: Vec::new(),
        };
        for queues in &mut threads.queues {
            let first = files.block_bytes.max(piece);
            while queues.opened.len() < files.opened_ahead
                && queues.open_next(first, &threads.made_of).is_some()
            {}
        }
        threads
    }

    fn costs(&self, at: PeId) -> (usize, &'a FileCosts) {
        let disk = self.files.disk_of[at.index()];
        (disk, &self.files.disks[disk])
    }

    /// Returns whether the bytes of a message of `at` from `offset` are ready to be sent to `to`; if not,
    /// the end of a task in progress wakes the PE.
    pub fn is_read(&mut self, at: PeId, to: PeId, message: Message, offset: u64) -> bool {
        if let Some(again) = self.queues[at.index()].open_again(message, to) {
            self.read(at, again);
            return false;
        }
        let queues = &mut self.queues[at.index()];
        let is_it = |reading: &Reading| {
            reading.message == message && reading.receiver.is_none_or(|receiver| receiver == to)
        };
        let is_left = |reading: &Reading| reading.taken < reading.message.bytes;
        queues.opened.retain(|it| is_it(it) || is_left(it));
        let Some(reading) = queues.opened.iter_mut().find(|reading| is_it(reading)) else {
            return true;
        };
        if offset < reading.taken {
            return true;
        }
        if reading.read <= offset {
            return false;
        }
        // The block is taken, so the next one can be read; with the first block, also a following
        // message.
        let first = reading.taken == 0;
        reading.receiver = Some(to);
        reading.taken = reading.read;
        let number = reading.number;
        let is_left = reading.read < message.bytes;
        queues.begun.insert((message.id, to));
        if is_left {
            self.read(at, number);
        }
        if first && let Some(next) = self.queues[at.index()].open_next(0, &self.made_of) {
            self.read(at, next);
        }
        true
    }

    /// Starts to read the next block of a message.
    fn read(&mut self, at: PeId, number: u64) {
        let (disk, costs) = self.costs(at);
        let queues = &mut self.queues[at.index()];
        let mut opened = queues.opened.iter();
        let Some(reading) = opened.find(|reading| reading.number == number) else {
            return;
        };
        let made_of = self.made_of.get(&reading.message.id);
        let all_entries = made_of.map_or(0, |it| it.entries) as f64;
        let cold_bytes = reading.cold_bytes as f64;
        let whole = reading.message.bytes;
        let bytes = (whole - reading.read).min(block_of(self.files, self.piece, whole)) as f64;
        let part = bytes / whole as f64;
        let entries = all_entries * part;
        let cold = cold_bytes * part;
        let cold_entries = entries * cold_bytes / whole as f64;
        let mut steps = VecDeque::from([Step::Core(
            costs.thread_ns + costs.open_ns * entries + costs.read_ns_per_byte * bytes,
        )]);
        if cold > 0.0 {
            let busy = costs.fetch_ns * cold_entries + costs.fetch_ns_per_byte * cold;
            let wait = 0.0;
            steps.push_back(Step::Disk { disk, busy, wait });
        }
        let goal = TaskCompletion::Read(number);
        self.begun.push(FileTask { at, steps, goal });
    }

    /// Accepts `bytes` bytes of a message for `at`, unless these have to wait: for the previous
    /// block to be written, or, with the last bytes, for another message to be durable.
    pub fn take(&mut self, at: PeId, message: Message, bytes: u64, last: bool) -> bool {
        let queues = &mut self.queues[at.index()];
        let is_late = last && queues.commits >= self.files.commits_under_way;
        let writing = queues.writing_of(message);
        let block = block_of(self.files, self.piece, message.bytes);
        let full = writing.filled > 0 && writing.filled + bytes > block;
        if (full && writing.busy) || is_late {
            return false;
        }
        if full {
            self.write(at, message, TaskCompletion::Written(message.id), Vec::new());
        }
        let queues = &mut self.queues[at.index()];
        queues.writing_of(message).filled += bytes;
        if last {
            queues.commits += 1;
            let (disk, costs) = self.costs(at);
            // The receipt, and the directory that shows the message; before them, many entries together.
            let (syncs, synced) = match self.is_synced_at_end(message) {
                _ if self.files.durability == Durability::Never => (0.0, 0.0),
                true => {
                    let last = self.queues[at.index()].writing_of(message).filled as f64;
                    let bytes = (self.dirty[disk] + last).min(message.bytes as f64);
                    (3.0, bytes)
                }
                false => (2.0, 0.0),
            };
            self.dirty[disk] -= synced;
            let sync = self.sync(disk, costs, syncs, synced);
            let commit = vec![Step::Core(costs.commit_ns), sync];
            self.write(at, message, TaskCompletion::Visible(message), commit);
            let writing = &mut self.queues[at.index()].writing;
            writing.retain(|writing| writing.message != message);
        }
        true
    }

    /// Returns the files that a message is made of.
    fn made_of(&self, message: Message) -> MadeOf {
        self.made_of.get(&message.id).copied().unwrap_or_default()
    }

    /// Returns whether the files of a message are synced together at its end.
    fn is_synced_at_end(&self, message: Message) -> bool {
        let entries = self.made_of(message).entries;
        let is_short = || message.bytes / entries < LARGE_FILE_BYTES;
        self.files.durability == Durability::Message && entries > SYNCED_ALONE && is_short()
    }

    /// Passes the filled block to the thread, with the steps that follow it.
    fn write(&mut self, at: PeId, message: Message, goal: TaskCompletion, then: Vec<Step>) {
        let (disk, costs) = self.costs(at);
        let entries = self.made_of(message).entries;
        let at_end = self.is_synced_at_end(message);
        let writing = self.queues[at.index()].writing_of(message);
        let whole = writing.message.bytes as f64;
        let entry_bytes = whole / entries.max(1) as f64;
        let (before, bytes) = (writing.given as f64, writing.filled as f64);
        writing.given += writing.filled;
        writing.filled = 0;
        let waits = std::mem::replace(&mut writing.busy, true);
        let created = bytes / entry_bytes;
        let after = before + bytes;
        let ended = |at: f64| (at / entry_bytes + 1e-6).floor();
        let ends = ended(after) - ended(before);
        // A direct write hashes the bytes and copies them to a buffer, each in about the time of reading them
        // from memory, and waits for the disk if both buffers are full.
        let is_direct = is_written_directly(entry_bytes as u64, self.files.durability);
        let (byte_ns, memory_bytes) = match is_direct {
            true => (
                2.0 * costs.read_ns_per_byte,
                2.0 * DIRECT_BUFFER_BYTES as f64,
            ),
            false => (costs.write_ns_per_byte, costs.memory_bytes),
        };
        let core = costs.create_ns * created + byte_ns * bytes;
        self.dirty[disk] += bytes;
        let beyond = self.dirty[disk] - memory_bytes;
        let (syncs, synced) = match () {
            // A sync covers the data of the files that end here, unless the disk has it already.
            () if ends > 0.0 && !at_end && self.files.durability != Durability::Never => {
                let end = after.min(ended(after) * entry_bytes);
                let of_files = end - ended(before) * entry_bytes;
                (ends, of_files.min(self.dirty[disk]))
            }
            () if beyond > 0.0 => (0.0, beyond),
            () => (0.0, 0.0),
        };
        self.dirty[disk] = (self.dirty[disk] - synced).max(0.0);
        // Files are created and synced one after the other; without a sync between, in one step.
        let is_synced = syncs + synced > 0.0;
        let parts = ends.clamp(1.0, if is_synced { MOST_STEPS } else { 1.0 });
        let sync = self.sync(disk, costs, syncs / parts, synced / parts);
        // The first block is passed behind the task that creates the message.
        let tasks = if before > 0.0 { 1.0 } else { 2.0 };
        let mut steps = VecDeque::from([Step::Core(costs.thread_ns * tasks)]);
        for _ in 0..parts as u64 {
            steps.push_back(Step::Core(core / parts));
            steps.extend(is_synced.then_some(sync));
        }
        steps.extend(then);
        let task = FileTask { at, steps, goal };
        match waits {
            true => self.queues[at.index()].behind.push(task),
            false => self.begun.push(task),
        }
    }

    fn sync(&self, disk: usize, costs: &FileCosts, syncs: f64, bytes: f64) -> Step {
        let alone = costs.sync_alone_ns.min(costs.sync_ns);
        Step::Disk {
            disk,
            busy: alone * syncs + costs.flush_ns_per_byte * bytes,
            wait: (costs.sync_ns - alone) * syncs,
        }
    }

    /// Adds work for a disk at `now`; returns when it is done.
    pub fn serve(&mut self, now: u64, disk: usize, busy: f64, wait: f64) -> u64 {
        let free = &mut self.free[disk];
        *free = free.max(now as f64) + busy;
        (*free + wait).round() as u64
    }

    /// Handles the end of a task of `at`.
    pub fn done(&mut self, at: PeId, goal: TaskCompletion) {
        let (files, piece) = (self.files, self.piece);
        let queues = &mut self.queues[at.index()];
        match goal {
            TaskCompletion::Read(number) => {
                let reading = queues.opened.iter_mut().find(|it| it.number == number);
                if let Some(reading) = reading {
                    let whole = reading.message.bytes;
                    reading.read = (reading.read + block_of(files, piece, whole)).min(whole);
                }
            }
            TaskCompletion::Written(of) => {
                let is_next =
                    |task: &FileTask| matches!(task.goal, TaskCompletion::Visible(m) if m.id == of);
                if let Some(next) = queues.behind.iter().position(is_next) {
                    self.begun.push(queues.behind.swap_remove(next));
                } else {
                    let writing = queues.writing.iter_mut();
                    let of_it = writing.filter(|writing| writing.message.id == of);
                    of_it.for_each(|writing| writing.busy = false);
                }
            }
            TaskCompletion::Visible(_) => queues.commits -= 1,
        }
    }
}

/// Returns the bytes of a message of this length that are read or written at once: at least a piece.
fn block_of(files: &Files, piece: u64, message_bytes: u64) -> u64 {
    match message_bytes >= files.long.message_bytes {
        true => files.long.block_bytes.max(piece),
        false => files.block_bytes.max(piece),
    }
}

#[cfg(test)]
mod tests;
