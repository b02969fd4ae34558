//! The threads of a predicted round take and give up cores.

use flitcast_proto::PeId;

use super::cores::{Cores, Thread};
use super::prediction_state::{Event, PredictionState};

impl PredictionState<'_> {
    /// Returns the cores of the machine on which a thread runs.
    fn cores_of(&mut self, thread: Thread) -> &mut Cores {
        let at = match thread.checked_sub(self.stations.len()) {
            Some(task) => self.tasks[task].at,
            None => PeId(thread as u32),
        };
        &mut self.cores[self.model.hosts.machine_of(at)]
    }

    /// Returns whether a thread with work has a core for it; if not, it will get one. A thread whose
    /// time slice is over has to wait for its next one.
    pub(super) fn takes_core(&mut self, now: u64, thread: Thread) -> bool {
        if self.cores_of(thread).is_over(now, thread) {
            self.give_up_core(now, thread);
        }
        let takes = self.cores_of(thread).take(now, thread);
        self.await_turn(now, thread);
        takes
    }

    /// Takes the core of a thread, if it has one, and runs the thread that has waited longest.
    pub(super) fn give_up_core(&mut self, now: u64, thread: Thread) {
        let next = self.cores_of(thread).give_up(now, thread);
        self.await_turn(now, thread);
        self.run(now, next);
    }

    /// Lets threads take turns with other programs on the machine of a thread.
    pub(super) fn take_turn(&mut self, now: u64, thread: Thread) {
        let next = self.cores_of(thread).turn(now);
        self.run(now, next);
        if next.is_some() {
            self.await_turn(now, thread);
        }
    }

    /// Plans the next turn of the threads that wait on the machine of a thread.
    fn await_turn(&mut self, now: u64, thread: Thread) {
        if let Some(turn) = self.cores_of(thread).next_turn() {
            self.cause(turn.max(now), Event::Turn(thread));
        }
    }

    /// Lets a thread with a core continue.
    fn run(&mut self, now: u64, thread: Option<Thread>) {
        let pes = self.stations.len();
        match thread {
            Some(next) if next < pes => self.start(now, PeId(next as u32)),
            Some(next) => self.work_on(now, next - pes),
            None => {}
        }
    }
}
