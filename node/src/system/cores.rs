//! The cores on which this thread runs.

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The core to which a thread returns. PEs that poll never sleep, so the kernel does not distribute
/// them over the cores, and most of them may have to share one.
#[derive(Debug)]
pub struct HomeCore {
    core: usize,
    /// All cores that the thread may use.
    allowed: CpuSet,
}

impl HomeCore {
    /// Chooses a core; threads with consecutive numbers get different ones. Returns `None` if there is
    /// only one, or if the system does not name them.
    pub fn choose(number: usize) -> Option<HomeCore> {
        let allowed = sched_getaffinity(None).ok()?;
        let is_allowed = |core: &usize| allowed.is_set(*core);
        let mut cores = (0..CpuSet::MAX_CPU).filter(is_allowed);
        let core = match allowed.count() as usize {
            0 | 1 => None,
            count => cores.nth(number % count),
        };
        core.map(|core| HomeCore { core, allowed })
    }

    /// Moves the calling thread to the core, from which the kernel may take it away again, for example
    /// if another program is busy there.
    pub fn go(&self) {
        if sched_getcpu() != self.core {
            let mut only = CpuSet::new();
            only.set(self.core);
            // The thread runs anywhere, if not as fast.
            let _ = sched_setaffinity(None, &only);
            let _ = sched_setaffinity(None, &self.allowed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_go_to_different_cores_and_may_still_use_all() {
        let allowed = sched_getaffinity(None).unwrap();
        let count = allowed.count() as usize;
        let homes: Vec<_> = (0..2 * count).filter_map(HomeCore::choose).collect();
        assert_eq!(homes.len(), if count > 1 { 2 * count } else { 0 });
        for (number, home) in homes.iter().enumerate() {
            assert!(allowed.is_set(home.core));
            let same = homes.iter().filter(|other| other.core == home.core);
            assert_eq!(same.count(), 2);
            assert_eq!(home.core, homes[number % count].core);
            home.go();
            assert_eq!(sched_getaffinity(None).unwrap(), allowed);
        }
    }
}
