//! Tracks which connections may have data to read. A PE with very many neighbours would otherwise
//! poll all its connections for each frame.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// The read state of a connection that one task polls.
#[derive(Debug)]
pub struct Readiness {
    shared: Arc<Shared>,
    waker: Waker,
    /// A copy of the task's waker, since it is compared far more often than it changes.
    task: Waker,
}

#[derive(Debug)]
struct Shared {
    may_have_more: AtomicBool,
    task: Mutex<Waker>,
}

impl Default for Readiness {
    /// Creates the state of a connection that was not polled yet.
    fn default() -> Readiness {
        let shared = Arc::new(Shared {
            may_have_more: AtomicBool::new(true),
            task: Mutex::new(Waker::noop().clone()),
        });
        Readiness {
            waker: Waker::from(shared.clone()),
            shared,
            task: Waker::noop().clone(),
        }
    }
}

impl Readiness {
    /// Returns whether the last poll of the connection found nothing, and nothing has arrived
    /// since. If so, `task` is woken at the next arrival.
    pub fn is_quiet(&mut self, task: &Waker) -> bool {
        if self.shared.may_have_more.load(Acquire) {
            return false;
        }
        self.wakes(task);
        // The connection may have woken the previous task.
        !self.shared.may_have_more.load(Acquire)
    }

    /// Returns the waker for a poll of the connection. If the poll finds nothing, `task` is woken
    /// at the next arrival.
    pub fn waker_for(&mut self, task: &Waker) -> &Waker {
        self.wakes(task);
        self.shared.may_have_more.swap(false, AcqRel);
        &self.waker
    }

    /// Records that the poll found data, or the end.
    pub fn had_something(&self) {
        self.shared.may_have_more.store(true, Release);
    }

    fn wakes(&mut self, task: &Waker) {
        if !self.task.will_wake(task) {
            self.task.clone_from(task);
            let shared = self.shared.task.lock();
            let mut shared = shared.unwrap_or_else(PoisonError::into_inner);
            shared.clone_from(task);
        }
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.may_have_more.store(true, Release);
        let task = self.task.lock();
        task.unwrap_or_else(PoisonError::into_inner).wake_by_ref();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[derive(Default)]
    struct Counter(AtomicUsize);

    impl Wake for Counter {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    fn task() -> (Arc<Counter>, Waker) {
        let counter = Arc::<Counter>::default();
        (counter.clone(), counter.into())
    }

    #[test]
    fn a_connection_is_quiet_from_an_empty_poll_until_it_wakes() {
        let (woken, task) = task();
        let mut readiness = Readiness::default();
        assert!(!readiness.is_quiet(&task));
        let waker = readiness.waker_for(&task).clone();
        assert!(readiness.is_quiet(&task));
        waker.wake_by_ref();
        assert_eq!(woken.0.load(Relaxed), 1);
        assert!(!readiness.is_quiet(&task));
        readiness.waker_for(&task);
        readiness.had_something();
        assert!(!readiness.is_quiet(&task));
    }

    #[test]
    fn the_last_task_that_found_it_quiet_is_woken() {
        let [(first, one), (second, other)] = [task(), task()];
        let mut readiness = Readiness::default();
        let waker = readiness.waker_for(&one).clone();
        assert!(readiness.is_quiet(&other));
        waker.wake();
        assert_eq!([first, second].map(|woken| woken.0.load(Relaxed)), [0, 1]);
    }
}
