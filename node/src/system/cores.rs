//! The cores on which this thread runs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The core to which one of several threads returns. Threads that poll never sleep, so the kernel does not
/// distribute them over the cores, and most of them may have to share one.
#[derive(Debug)]
pub struct HomeCore {
    core: usize,
}

impl HomeCore {
    /// Chooses a core for the thread with this number, so that all cores get the same number of threads.
    /// Returns `None` if there are no more threads than cores, since the kernel finds an idle core for
    /// each then, or if the system does not name the cores.
    pub fn choose(number: usize, threads: usize) -> Option<HomeCore> {
        let allowed = sched_getaffinity(None).ok()?;
        let count = allowed.count() as usize;
        if threads <= count || count < 2 {
            return None;
        }
        let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
        let core = cores.nth(number % count)?;
        Some(HomeCore { core })
    }

    /// Moves the calling thread to the core, if it still may use it. The kernel may move it away again,
    /// for example if another program is busy there.
    pub fn move_here(&self) {
        if sched_getcpu() == self.core {
            return;
        }
        if let Ok(allowed) = sched_getaffinity(None)
            && allowed.is_set(self.core)
        {
            let mut only = CpuSet::new();
            only.set(self.core);
            // The thread runs anywhere, if not as fast.
            let _ = sched_setaffinity(None, &only);
            let _ = sched_setaffinity(None, &allowed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_move_to_different_cores_and_may_still_use_all() {
        let allowed = sched_getaffinity(None).unwrap();
        let count = allowed.count() as usize;
        let homes = |threads: usize| -> Vec<_> {
            let each = (0..threads).filter_map(|number| HomeCore::choose(number, threads));
            each.collect()
        };
        assert!(homes(count).is_empty());
        let homes = homes(2 * count);
        assert_eq!(homes.len(), if count > 1 { 2 * count } else { 0 });
        for home in &homes {
            assert!(allowed.is_set(home.core));
            let same = homes.iter().filter(|other| other.core == home.core);
            assert_eq!(same.count(), 2);
            home.move_here();
            assert_eq!(sched_getaffinity(None).unwrap(), allowed);
        }
    }
}
