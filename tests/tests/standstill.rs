//! A coordinator in a long computation still handles signals and PEs. A run that is stopped for a
//! while, or whose coordinator is, continues and reports no PE as failed.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::processes::{Process, eventually};
use flitcast_tests::{Folder, Running, scratch, start};
use rustix::process::Signal;

/// A gossip that takes a second or more to plan and to predict, and hours to run.
const LONG: &str = "gossip --tree kary:2:24 --size 8GiB --link rate=1gbit --format json -v";

/// Starts the gossip, and waits until it is being predicted.
fn predicted() -> Running {
    let mut running = start(LONG.split(' '));
    running.wait_for(&["predicting the round"]);
    running
}

#[test]
fn signals_end_a_run_while_it_is_predicted() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let running = predicted();
        running.signal(signal);
        let finished = running.finish();
        finished.fails(code, &["interrupted: every process was stopped"]);
        assert!(!finished.stderr.contains("triggered"), "{finished:?}");
    }
}

#[test]
fn the_death_of_a_pe_is_noticed_while_the_round_is_predicted() {
    for pe in [0, 3, 7] {
        let running = predicted();
        running.pe(pe).signal(Signal::KILL);
        let finished = running.finish().with_code(1);
        let cause = format!("error: P{pe} was killed by signal 9");
        finished.stderr_has(&[&cause, "when: predicting the round"]);
        assert_eq!(finished.report().value("/error/phase"), "predict");
    }
}

#[test]
fn a_pe_that_stands_still_is_noticed_while_the_round_is_predicted() {
    let running = predicted();
    running.pe(3).signal(Signal::STOP);
    let finished = running.finish();
    finished.fails(1, &["error: P3 has been silent for 3.0 s"]);
}

/// Short timeouts, so that tests are short.
const LIMITS: &str = "--timeouts heartbeat=100ms,silence=1s,write=2s";

/// Shorter than the timeout, about as long, and much longer.
const STANDSTILLS: [Duration; 3] = [
    Duration::from_millis(800),
    Duration::from_millis(1050),
    Duration::from_millis(2500),
];

/// A scatter of files that takes two seconds.
struct Scatter {
    dir: Folder,
    running: Running,
}

impl Scatter {
    #[track_caller]
    fn start() -> Scatter {
        let dir = scratch();
        for pe in 1..4 {
            fill(&dir.join(format!("in/p{pe}/one")), 1_500_000);
        }
        let line = "scatter --tree path:4 --link rate=20mbit --input @/in --output @/out -v";
        let mut running = dir.start(&format!("{line} {LIMITS}"));
        running.wait_for(&["triggered"]);
        Scatter { dir, running }
    }

    fn ends_well(self) {
        let finished = self.running.finish().ok();
        assert!(!finished.stderr.contains("silent"), "{}", finished.stderr);
        assert_same_below(&self.dir.join("in"), &self.dir.join("out"));
    }
}

fn is_stopped(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ");
    fields.is_some_and(|(_, fields)| fields.starts_with('T'))
}

#[track_caller]
fn all_are(running: &Running, stopped: bool) -> Vec<Process> {
    eventually("all processes are alike", || {
        let all = running.processes();
        let alike = all.iter().all(|process| is_stopped(process.pid) == stopped);
        alike.then_some(all)
    })
}

#[test]
fn a_stop_of_the_job_stops_and_continues_all_of_it() {
    for standstill in STANDSTILLS {
        let scatter = Scatter::start();
        scatter.running.signal(Signal::TSTP);
        let stopped = all_are(&scatter.running, true);
        assert_eq!(stopped.len(), 5, "{stopped:?}");
        sleep(standstill);
        scatter.running.signal(Signal::CONT);
        all_are(&scatter.running, false);
        scatter.ends_well();
    }
}

/// The coordinator alone stops, or all processes, as on a sleeping machine or in a frozen container.
#[test]
fn a_run_that_stands_still_blames_no_pe() {
    for (standstill, stops_all) in STANDSTILLS
        .into_iter()
        .flat_map(|it| [(it, false), (it, true)])
    {
        let scatter = Scatter::start();
        let mut stopped = scatter.running.processes();
        stopped.retain(|process| stops_all || process.pid as u32 == scatter.running.pid());
        for process in &stopped {
            process.signal(Signal::STOP);
        }
        sleep(standstill);
        for process in stopped.iter().rev() {
            process.signal(Signal::CONT);
        }
        scatter.ends_well();
    }
}

/// The death of their parent continues stopped processes, and they leave. The second coordinator is
/// killed while its processes are still about to stop.
#[test]
fn a_stopped_job_that_is_killed_leaves_no_process() {
    let scatter = Scatter::start();
    scatter.running.signal(Signal::TSTP);
    all_are(&scatter.running, true);
    scatter.running.kill();

    let scatter = Scatter::start();
    for pe in scatter.running.pes() {
        pe.signal(Signal::STOP);
    }
    scatter.running.kill();
}
