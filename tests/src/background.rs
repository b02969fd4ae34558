//! Threads beside a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};

/// State that the threads share with the test.
#[derive(Default)]
pub struct Shared {
    counted: AtomicU64,
    is_over: AtomicBool,
}

impl Shared {
    pub fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    pub fn counted(&self) -> u64 {
        self.counted.load(Relaxed)
    }

    /// Counts more, and returns the number before.
    pub fn count(&self, more: u64) -> u64 {
        self.counted.fetch_add(more, Relaxed)
    }
}

/// Threads that end when this is dropped.
pub struct Background {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Background {
    /// Starts threads; each has to end soon after all is over.
    pub fn start(threads: u64, work: impl Fn(&Shared) + Clone + Send + 'static) -> Background {
        let shared = Arc::<Shared>::default();
        let start = |_| {
            let (shared, work) = (shared.clone(), work.clone());
            thread::spawn(move || work(&shared))
        };
        let threads = (0..threads).map(start).collect();
        Background { shared, threads }
    }

    pub fn counted(&self) -> u64 {
        self.shared.counted()
    }

    /// Waits for the end of the threads, which may not panic, and returns what they have counted.
    #[track_caller]
    pub fn end(mut self) -> u64 {
        self.shared.is_over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a thread of the test does not panic");
        }
        self.counted()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
