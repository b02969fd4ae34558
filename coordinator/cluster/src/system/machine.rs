//! A description of the machine, and its load.

use std::time::Duration;

use flitcast_node::system::process::cores;
use rustix::time::{ClockId, clock_gettime};

/// Returns the name, the kernel and the architecture.
pub fn described() -> String {
    let system = rustix::system::uname();
    let [node, name, release, machine] = [
        system.nodename(),
        system.sysname(),
        system.release(),
        system.machine(),
    ]
    .map(|part| part.to_string_lossy());
    format!("{node}, {name} {release} {machine}")
}

/// Returns the time that this thread has run on a processor, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32).as_nanos() as u64
}

/// The number of threads of other programs on this machine that have work at all moments when the
/// processes of a run have none; `None` before the first such moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct BusyThreads(Option<u32>);

impl BusyThreads {
    /// Counts the threads that run or wait for a core now. The processes of the run must be idle.
    pub fn count(&mut self) {
        let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        self.0 = self.0.into_iter().chain(running(&text)).min();
    }

    /// Returns the number, at most one for each core: the kernel divides the cores among sessions
    /// before it divides them among the threads of one.
    pub fn number(self) -> u32 {
        self.0.unwrap_or(0).min(cores().unwrap_or(1))
    }
}

/// Parses the fourth field of `/proc/loadavg`, `running/all`, less the thread that reads it.
fn running(text: &str) -> Option<u32> {
    let (running, _) = text.split_whitespace().nth(3)?.split_once('/')?;
    let running: u32 = running.parse().ok()?;
    Some(running.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_understood() {
        assert_eq!(running("1.12 0.64 0.26 3/241 5011\n"), Some(2));
        assert_eq!(running("1.12 0.64 0.26 0/241 5011\n"), Some(0));
        for nonsense in ["", "1 2 3 4", "1 2 3 x/4 5"] {
            assert_eq!(running(nonsense), None, "{nonsense}");
        }
        let mut here = BusyThreads::default();
        here.count();
        assert!(here.0.is_some(), "this is Linux");
    }

    #[test]
    fn there_is_at_most_one_for_each_core() {
        assert_eq!(BusyThreads(None).number(), 0);
        assert_eq!(BusyThreads(Some(0)).number(), 0);
        let cores = cores().expect("Linux tells");
        assert_eq!(BusyThreads(Some(900)).number(), cores);
    }
}
