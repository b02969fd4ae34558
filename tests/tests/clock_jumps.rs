//! Wall clocks that are set during a round, by a day and more, forwards and back: rounds are not
//! affected, no reported time contains the jump, and all bytes are correct.
//!
//! The lines that the processes log, each with its time of day, show that their clock jumps.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use flitcast_tests::clocks::WallClock;
use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::processes::eventually;
use flitcast_tests::run::{CACHE_VARIABLE, begin};
use flitcast_tests::{Finished, Folder, Report, Running, flitcast, scratch};
use rustix::process::Signal;
use serde_json::Value;

/// Sixteen messages, each of which takes a quarter of a second on its link.
const MESSAGES: u32 = 16;
const BYTES: usize = 250_000;
const RATE: &str = "rate=8mbit";
const BYTES_PER_US: f64 = 1.0;

struct Place {
    dir: Folder,
    clock: WallClock,
}

impl Place {
    /// Creates messages for these PEs.
    #[track_caller]
    fn new(pes: impl IntoIterator<Item = u32>) -> Place {
        let place = Place {
            dir: scratch(),
            clock: WallClock::new(),
        };
        for pe in pes {
            fill(&place.at(&format!("in/p{pe}/data")), BYTES);
        }
        place
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    #[track_caller]
    fn start(&self, line: &str) -> Running {
        let mut command = Command::new(flitcast());
        command.args(line.split_whitespace());
        command.current_dir(self.dir.path());
        command.env("XDG_RUNTIME_DIR", self.dir.path());
        command.env(CACHE_VARIABLE, self.at("cache"));
        self.clock.rule(&mut command);
        begin(command)
    }

    #[track_caller]
    fn run(&self, line: &str) -> Finished {
        self.start(line).finish()
    }

    /// Starts a round that logs, and waits until a PE sends on this day.
    #[track_caller]
    fn round(&self, line: &str) -> Running {
        let mut round = self.start(&format!("{line} -vv --format json"));
        round.wait_for(&[&self.clock.day(), "send message"]);
        round
    }

    /// Sets the clock, and waits until a PE has logged the begin of another message on the new day:
    /// the round runs, and uses this clock.
    #[track_caller]
    fn jumps(&self, round: &mut Running, days: i64) {
        self.clock.set(days);
        round.wait_for(&[&self.clock.day(), "send message"]);
    }
}

/// Checks that all times are between 0 and the duration by the test's own clock, and that the round
/// took as long as its links require.
fn assert_sane(report: &Report, began: Instant, least_us: f64) {
    let at_most_us = began.elapsed().as_secs_f64() * 1e6;
    report.assert_all_arrived();
    let round_us = report.float("/round/measured_us/max");
    assert!((least_us..at_most_us).contains(&round_us), "{round_us} us");
    for what in ["/launch_us", "/probe_us"] {
        let us = report.float(what);
        assert!(us > 0.0 && us < at_most_us, "{what}: {us} of {at_most_us}");
    }
}

#[test]
#[ignore = "needs faketime"]
fn a_round_of_files_does_not_notice() {
    let place = Place::new(1..=MESSAGES);
    let tree = format!("--tree star:{} --link {RATE}", MESSAGES + 1);
    for (operation, from, to) in [("scatter", "in", "out"), ("gather", "out", "back")] {
        let began = Instant::now();
        let line = format!("{operation} {tree} --input {from} --output {to}");
        let mut round = place.round(&line);
        place.jumps(&mut round, 1);
        let now = eventually("the round is watched", || picture(&place));
        let passed_ns = began.elapsed().as_nanos() as u64;
        let number = |name: &str| now[name].as_u64().expect(name);
        assert!(number("elapsed_ns") < passed_ns, "{now:#}");
        // It is less than an hour even on a busy machine.
        assert!(number("left_ns") < 3_600_000_000_000, "{now:#}");
        place.jumps(&mut round, -1);
        place.jumps(&mut round, 0);

        let done = round.finish().ok();
        // The links transfer the begin of a message at once.
        let least_us = f64::from(MESSAGES) * BYTES as f64 / BYTES_PER_US * 0.9;
        assert_sane(&done.report(), began, least_us);
        assert_same_below(&place.at(from), &place.at(to));
    }
}

/// Returns the output of `flitcast watch` for a running round.
fn picture(place: &Place) -> Option<Value> {
    let shown = place.run("watch --once --format json");
    let shown: Value = serde_json::from_str(&shown.stdout).ok()?;
    (shown["phase"] == "round" && shown["left_ns"].is_u64()).then_some(shown)
}

/// Certificates are checked when a connection is made. So a round in which they expire continues,
/// and a command that begins later fails with the reason.
#[test]
#[ignore = "needs faketime"]
fn a_guarded_round_outlives_its_certificates_and_no_other_begins() {
    let place = Place::new(1..=MESSAGES);
    let pes = MESSAGES + 1;
    place.run(&format!("ca init ca --pes {pes} --days 2")).ok();
    let line = format!("scatter --tree star:{pes} --link {RATE} --credentials ca");
    let line = format!("{line} --input in --output out");
    let began = Instant::now();
    let mut round = place.round(&line);
    for days in [10, -10, 10] {
        place.jumps(&mut round, days);
    }
    let done = round.finish().ok();
    let report = done.report();
    assert_eq!(report.value("/security"), "tls");
    assert_sane(&report, began, 0.0);
    assert_same_below(&place.at("in"), &place.at("out"));

    for (days, why) in [(10, "expired"), (-10, "not valid before")] {
        place.clock.set(days);
        let refused = place.run(&line.replace("--output out", "--output other"));
        refused.fails(2, &[why]);
        assert!(!place.at("other").exists());
    }
}

/// P1 has no message, but P3 and P4 are below it: it dies on one day, and the round continues
/// without it on another.
#[test]
#[ignore = "needs faketime"]
fn a_round_is_repaired_on_another_day() {
    let place = Place::new(2..=6);
    let began = Instant::now();
    let line = format!("scatter --tree kary:2:7 --link {RATE} --input in --output out --retry 1");
    let mut round = place.round(&line);
    round.wait_for(&["P0| ", "send message"]);
    place.jumps(&mut round, 1);
    round.pe(1).signal(Signal::KILL);
    round.wait_for(&["going on without it: P3, P4 move to P0"]);
    place.jumps(&mut round, -1);
    let done = round.finish().ok();
    let report = done.report();
    assert_eq!(report.number("/retries/0/left_out/0/pe"), 1);
    let round_us = report.float("/round/measured_us/max");
    assert!(round_us < began.elapsed().as_secs_f64() * 1e6);
    assert_same_below(&place.at("in"), &place.at("out"));
}
