//! The schedule of threads that work on files: when they get a core or a disk, and which PEs they
//! wake.

use flitcast_proto::items::Message;
use flitcast_proto::round::Piece;
use flitcast_proto::{PeId, Time};

use super::cores::SLICE_NS;
use super::files::{Step, TaskCompletion};
use super::prediction_state::{Event, PredictionState};

impl PredictionState<'_> {
    /// Returns whether the next bytes that a PE sends are read; if not, the end of a task wakes
    /// it.
    pub(super) fn is_read(&mut self, now: u64, at: PeId, to: PeId, piece: Piece) -> bool {
        let (message, offset) = (piece.message, piece.offset);
        let Some(file_threads) = &mut self.file_threads else {
            return true;
        };
        let starts_here = message.source == at;
        let is_read = !starts_here || file_threads.is_read(at, to, message, offset);
        self.begin_tasks(now);
        self.stations[at.index()].record_file_wait(now, is_read)
    }

    /// Returns whether a PE can store the bytes that it has received; if not, the end of a task
    /// makes it try again.
    pub(super) fn is_taken(
        &mut self,
        now: u64,
        at: PeId,
        message: Message,
        [offset, bytes]: [u64; 2],
    ) -> bool {
        let Some(file_threads) = &mut self.file_threads else {
            return true;
        };
        let is_last = offset + bytes == message.bytes;
        let is_taken = file_threads.take(at, message, bytes, is_last);
        self.begin_tasks(now);
        self.stations[at.index()].record_file_wait(now, is_taken)
    }

    /// Starts the threads of new tasks.
    fn begin_tasks(&mut self, now: u64) {
        let file_threads = self.file_threads.as_mut();
        let begun = file_threads.map(|file_threads| std::mem::take(&mut file_threads.begun));
        for task in begun.into_iter().flatten() {
            let wake = self.model.hosts.of(task.at).wake_ns.round() as u64;
            self.tasks.push(task);
            self.cause(now.saturating_add(wake), Event::Step(self.tasks.len() - 1));
        }
    }

    /// Continues a task: its thread works for a while if it has a core, waits for a disk, or is
    /// done.
    pub(super) fn step(&mut self, now: u64, index: usize) {
        let thread = self.stations.len() + index;
        let task = &mut self.tasks[index];
        while matches!(task.steps.front(), Some(Step::Core(work)) if *work < 1.0) {
            task.steps.pop_front();
        }
        let (at, goal) = (task.at, task.goal);
        if let Some(Step::Core(_)) = task.steps.front() {
            if self.takes_core(now, thread) {
                self.work_on(now, index);
            }
            return;
        }
        let next = task.steps.pop_front();
        self.give_up_core(now, thread);
        let Some(file_threads) = &mut self.file_threads else {
            return;
        };
        if let Some(Step::Disk { disk, busy, wait }) = next {
            let done = file_threads.serve(now, disk, busy, wait);
            self.cause(done, Event::Step(index));
            return;
        }
        file_threads.done(at, goal);
        self.begin_tasks(now);
        let station = &mut self.stations[at.index()];
        if let TaskCompletion::Visible(message) = goal {
            station.round.handle_committed(Time(now), message, None);
        }
        self.cause(now, Event::Look(at));
    }

    /// Lets a thread with a core work until its step is over or it may have to yield.
    pub(super) fn work_on(&mut self, now: u64, index: usize) {
        if let Some(Step::Core(work)) = self.tasks[index].steps.front_mut() {
            // Very long work is divided into a limited number of stretches.
            let stretch = work.min((SLICE_NS as f64).max(*work / 16.0));
            *work -= stretch;
            let end = now.saturating_add(stretch.round() as u64);
            self.cause(end, Event::Step(index));
        }
    }
}
