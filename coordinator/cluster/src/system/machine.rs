//! A description of the machine, and its load.

use std::time::{Duration, Instant};

use flitcast_node::system::process::cores;
use rustix::time::{ClockId, clock_gettime};

use crate::tuning::{BUSY_COUNTS, BUSY_PAUSE};

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

pub fn host_name() -> String {
    let system = rustix::system::uname();
    system.nodename().to_string_lossy().into_owned()
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
    /// Counts the threads that run or wait for a core. The processes of the run must be idle, except for a
    /// moment: while a thread is counted, the count is repeated a few times, and between the counts this
    /// thread sleeps, since the runtime's other thread may just have woken it and still run.
    pub fn count(&mut self) {
        self.count_in(|| std::fs::read_to_string("/proc/loadavg").unwrap_or_default());
    }

    /// Counts the threads in texts like that of `/proc/loadavg`.
    fn count_in(&mut self, mut load: impl FnMut() -> String) {
        for place in 0..BUSY_COUNTS {
            if place > 0 {
                std::thread::sleep(BUSY_PAUSE);
            }
            self.0 = self.0.into_iter().chain(running(&load())).min();
            if self.0.unwrap_or(0) == 0 {
                return;
            }
        }
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

/// A period in which the processes of a run do not use disks, and the time in it for which threads of
/// other programs on this machine waited for disks.
#[derive(Clone, Copy, Debug)]
pub struct DiskWaits {
    began: Instant,
    /// The time of waiting since the machine started, in microseconds; `None` if the kernel does not
    /// report it.
    waited_us: Option<u64>,
}

impl DiskWaits {
    /// Starts a period.
    pub fn begin() -> DiskWaits {
        DiskWaits {
            began: Instant::now(),
            waited_us: waited_us(),
        }
    }

    /// Returns the share of the period so far in which at least one thread waited for a disk, from 0 to 1.
    pub fn share(&self) -> f64 {
        let Some((before, now)) = self.waited_us.zip(waited_us()) else {
            return 0.0;
        };
        let period_us = self.began.elapsed().as_micros().max(1);
        (now.saturating_sub(before) as f64 / period_us as f64).min(1.0)
    }
}

/// Returns the time for which at least one thread of this machine waited for a disk.
fn waited_us() -> Option<u64> {
    some_us(&std::fs::read_to_string("/proc/pressure/io").ok()?)
}

/// Parses the line `some avg10=0.00 avg60=0.00 avg300=0.00 total=0` of `/proc/pressure/io`.
fn some_us(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.rsplit_once("total=")?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_line_is_parsed() {
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
    fn a_thread_that_runs_for_a_moment_is_not_busy() {
        // Each reading includes the thread that reads.
        let counted = |readings: &[u32]| {
            let mut readings = readings.iter().cycle();
            let mut threads = BusyThreads::default();
            threads.count_in(|| format!("0 0 0 {}/241 5011", readings.next().unwrap()));
            threads.0
        };
        assert_eq!(counted(&[2, 2, 1]), Some(0));
        assert_eq!(counted(&[3, 2]), Some(1));
        assert_eq!(counted(&[3]), Some(2));
    }

    #[test]
    fn the_kernels_lines_of_waits_are_parsed() {
        let full = "full avg10=0.00 avg60=0.00 avg300=0.14 total=2322644\n";
        let some = "some avg10=0.36 avg60=0.09 avg300=0.14 total=2615132\n";
        assert_eq!(some_us(&format!("{some}{full}")), Some(2_615_132));
        for nonsense in ["", full, "some total=x", "some 5"] {
            assert_eq!(some_us(nonsense), None, "{nonsense}");
        }
        let share = DiskWaits::begin().share();
        assert!((0.0..=1.0).contains(&share), "{share}");
        let unknown = DiskWaits {
            waited_us: None,
            ..DiskWaits::begin()
        };
        assert_eq!(unknown.share(), 0.0);
    }

    #[test]
    fn there_is_at_most_one_for_each_core() {
        assert_eq!(BusyThreads(None).number(), 0);
        assert_eq!(BusyThreads(Some(0)).number(), 0);
        let cores = cores().expect("Linux reports them");
        assert_eq!(BusyThreads(Some(900)).number(), cores);
    }
}
