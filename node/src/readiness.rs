//! Whether a connection may have something to read. A PE that has everybody for a neighbour would
//! otherwise ask all its connections whenever a frame comes over one.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// What is known of a connection that one task reads from.
#[derive(Debug)]
pub struct Readiness {
    shared: Arc<Shared>,
    /// What the connection wakes.
    waker: Waker,
    /// What that wakes in turn: a copy, since it is asked for far more often than it changes.
    task: Waker,
}

#[derive(Debug)]
struct Shared {
    may_have_more: AtomicBool,
    task: Mutex<Waker>,
}

impl Default for Readiness {
    /// Of a connection that was not asked yet.
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
    /// Whether the connection had nothing when it was asked last, and has told of nothing since. If so,
    /// `task` is woken when it does.
    pub fn is_quiet(&mut self, task: &Waker) -> bool {
        if self.shared.may_have_more.load(Acquire) {
            return false;
        }
        self.wakes(task);
        // It may have told the task before this one.
        !self.shared.may_have_more.load(Acquire)
    }

    /// The waker to ask the connection with, now. If it has nothing, `task` is woken when it has.
    pub fn ask(&mut self, task: &Waker) -> &Waker {
        self.wakes(task);
        self.shared.may_have_more.swap(false, AcqRel);
        &self.waker
    }

    /// The connection had something, or an end.
    pub fn had_something(&self) {
        self.shared.may_have_more.store(true, Release);
    }

    fn wakes(&mut self, task: &Waker) {
        if !self.task.will_wake(task) {
            self.task.clone_from(task);
            let mut shared = self.shared.task.lock();
            let shared = shared
                .as_mut()
                .unwrap_or_else(|poisoned| poisoned.get_mut());
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
    fn a_connection_is_quiet_from_when_it_has_nothing_until_it_tells() {
        let (woken, task) = task();
        let mut readiness = Readiness::default();
        assert!(!readiness.is_quiet(&task));
        let waker = readiness.ask(&task).clone();
        assert!(readiness.is_quiet(&task));
        waker.wake_by_ref();
        assert_eq!(woken.0.load(Relaxed), 1);
        assert!(!readiness.is_quiet(&task));
        readiness.ask(&task);
        readiness.had_something();
        assert!(!readiness.is_quiet(&task));
    }

    #[test]
    fn whoever_saw_last_that_it_is_quiet_is_woken() {
        let [(first, one), (second, other)] = [task(), task()];
        let mut readiness = Readiness::default();
        let waker = readiness.ask(&one).clone();
        assert!(readiness.is_quiet(&other));
        waker.wake();
        assert_eq!([first, second].map(|woken| woken.0.load(Relaxed)), [0, 1]);
    }
}
