//! The time that a task works before it lets the other tasks of its thread run.

use flitcast_proto::Time;

use crate::limits::LONGEST_SLICE_NS;

/// The current uninterrupted work of a task. A task whose connections are always ready may make a hundred
/// system calls before the runtime interrupts it; where others use the processor, too, those take seconds.
#[derive(Debug, Default)]
pub struct WorkSlice {
    began: Time,
}

impl WorkSlice {
    /// Lets the other tasks run if the task has worked for long at `now`.
    pub async fn end_if_long(&mut self, now: Time) {
        if now.0.saturating_sub(self.began.0) >= LONGEST_SLICE_NS {
            tokio::task::yield_now().await;
            self.began = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// On one thread, another task runs at the beginning and once per slice.
    #[tokio::test(flavor = "current_thread")]
    async fn other_tasks_run_while_a_task_is_busy() {
        const ACTIONS: u64 = 10;
        let (others, is_over) = (Cell::new(0), Cell::new(false));
        let other = async {
            while !is_over.get() {
                others.set(others.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        let busy = async {
            let mut slice = WorkSlice::default();
            for action in 1..=100 * ACTIONS {
                slice
                    .end_if_long(Time(action * LONGEST_SLICE_NS / ACTIONS))
                    .await;
            }
            is_over.set(true);
        };
        tokio::join!(other, busy);
        assert_eq!(others.get(), 101);
    }
}
