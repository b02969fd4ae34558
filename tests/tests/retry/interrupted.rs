//! Runs that a signal ends, or that are killed: delivered messages are kept, and the run can be
//! resumed.

use std::fs;
use std::path::{Path, PathBuf};

use flitcast_tests::files::{
    self, assert_same, fill, identity, names, snapshot, without_folder_times,
};
use flitcast_tests::processes::until;
use flitcast_tests::{Finished, Folder, Running, resume, scratch, start};
use rustix::process::Signal;

/// An operation, with a message that takes seconds on its links and others that have arrived
/// before.
#[derive(Clone, Copy)]
pub struct Case {
    /// The operation and its options.
    pub line: &'static str,
    /// The entries of the input.
    pub entries: &'static [&'static str],
    /// The entry that is long.
    pub long: &'static str,
}

const fn case(line: &'static str, entries: &'static [&'static str], long: &'static str) -> Case {
    Case {
        line,
        entries,
        long,
    }
}

const PAIRS: [&str; 12] = [
    "p0/p1", "p0/p2", "p0/p3", "p1/p0", "p1/p2", "p1/p3", "p2/p0", "p2/p1", "p2/p3", "p3/p0",
    "p3/p1", "p3/p2",
];

/// All five operations.
pub const CASES: [Case; 5] = [
    case("scatter", &["p1", "p2", "p3"], "p1"),
    case("gather", &["p1", "p2", "p3"], "p3"),
    case("broadcast --algorithm child-by-child", &["model"], "model"),
    case("gossip", &["p0", "p1", "p2", "p3"], "p3"),
    case("exchange", &PAIRS, "p3/p0"),
];

impl Case {
    pub fn operation(&self) -> &'static str {
        self.line.split(' ').next().expect("it has words")
    }
}

/// The input of a case, and outputs beside it.
pub struct Place<'a> {
    dir: Folder,
    case: &'a Case,
    link: &'a str,
}

impl Place<'_> {
    fn new(case: &Case) -> Place<'_> {
        Place::with(case, 2 << 20, "rate=8mbit")
    }

    /// Creates the input with a long message of `long` bytes, to be sent over such links.
    pub fn with<'a>(case: &'a Case, long: usize, link: &'a str) -> Place<'a> {
        let dir = scratch();
        for entry in case.entries {
            let bytes = if *entry == case.long { long } else { 20_000 };
            fill(&dir.join("in").join(entry).join("some"), bytes);
        }
        Place { dir, case, link }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn line(&self, output: &str, more: &str) -> String {
        let line = self.case.line;
        let tree = match self.case.operation() {
            "broadcast" => "star:4",
            _ => "path:4",
        };
        format!("{line} --tree {tree} --input @/in --output @/{output} {more}")
    }

    #[track_caller]
    pub fn start(&self, output: &str, more: &str) -> Running {
        let on_links = format!("--link {} {more}", self.link);
        self.dir.start(&self.line(output, &on_links))
    }

    #[track_caller]
    pub fn run(&self, output: &str, more: &str) -> Finished {
        self.start(output, more).finish()
    }

    /// Returns what is in the output, and in its rows if it has rows.
    pub fn outputs(&self) -> Vec<PathBuf> {
        let has_rows = matches!(self.case.operation(), "gossip" | "exchange");
        let folders: Vec<PathBuf> = match has_rows {
            true => (0..4).map(|pe| self.path(&format!("out/p{pe}"))).collect(),
            false => vec![self.path("out")],
        };
        let listed = folders.iter().flat_map(fs::read_dir).flatten().flatten();
        listed.map(|entry| entry.path()).collect()
    }

    /// Returns the delivered messages, and whether another one is arriving.
    pub fn arrived(&self) -> (Vec<PathBuf>, bool) {
        let mut there = self.outputs();
        let arrives = |path: &PathBuf| path.to_string_lossy().ends_with(".partial");
        let arrives = there.iter().any(arrives);
        there.retain(|path| !path.to_string_lossy().contains("/.flitcast-"));
        (there, arrives)
    }

    /// Waits until a message is delivered and another one is arriving.
    #[track_caller]
    fn wait(&self) {
        until("a message is there, and another one arrives", || {
            let (there, arrives) = self.arrived();
            !there.is_empty() && arrives
        });
    }

    /// Starts a run, and waits until a message is delivered and another one is arriving.
    #[track_caller]
    fn cut(&self) -> Running {
        let running = self.start("out", "");
        self.wait();
        running
    }

    /// Checks that the output equals that of an undisturbed run, without hidden files.
    #[track_caller]
    pub fn assert_complete(&self) {
        self.dir.run(&self.line("whole", "")).ok();
        let [whole, out] = ["whole", "out"].map(|name| without_folder_times(&self.path(name)));
        assert_same(&whole, &out);
    }

    #[track_caller]
    pub fn record(&self) -> PathBuf {
        files::record(&self.path("out"))
    }
}

/// Returns properties that distinguish entries from rewritten ones.
#[track_caller]
pub fn identities(paths: &[PathBuf]) -> Vec<(u64, i64)> {
    paths.iter().map(|path| identity(path)).collect()
}

fn assert_prints_resume(finished: &Finished, record: &Path) {
    let command = format!("to go on: flitcast resume {}", record.display());
    finished.stderr_has(&[&command]);
}

/// Checks that a run that was cut off left whole messages, which are not written again by `resume`, or by the same
/// command, for users without knowledge of the record.
#[track_caller]
fn is_resumed(place: &Place, by_resume: bool) {
    let (before, arrives) = place.arrived();
    assert!(!before.is_empty() && !arrives, "{}", place.case.line);
    let kept = identities(&before);
    let resumed = match by_resume {
        true => resume(&place.record(), "").ok(),
        false => {
            let again = place.run("out", "").ok();
            let record = format!("going on from the record {}/", place.path("out").display());
            again.stderr_has(&[&record]);
            again
        }
    };
    resumed.stderr_has(&["resuming with all PEs"]);
    assert_eq!(identities(&before), kept, "one was written again");
    place.assert_complete();
}

/// A killed coordinator can write nothing, but the record was written before the round, and receipts contain the
/// rest.
#[test]
fn an_interrupted_run_and_a_killed_one_are_resumed() {
    let signals = [
        (Signal::INT, 130),
        (Signal::TERM, 143),
        (Signal::HUP, 129),
        (Signal::QUIT, 131),
        (Signal::INT, 130),
    ];
    for (at, (case, (signal, code))) in CASES.iter().zip(signals).enumerate() {
        let place = Place::new(case);
        let running = place.cut();
        running.signal(signal);
        let cut = running.finish().with_code(code);
        let expected = "interrupted: every process was stopped";
        cut.stderr_has(&[expected, "\n  delivered: ", ", and kept: "]);
        assert_prints_resume(&cut, &place.record());
        is_resumed(&place, at % 2 == 0);

        let place = Place::new(case);
        place.cut().kill();
        is_resumed(&place, at % 2 == 1);
    }
}

#[test]
fn an_interruption_before_the_first_round_leaves_no_record() {
    // On a busy machine the signal may arrive after the first byte.
    let left_nothing = (0..10).any(|_| {
        let place = Place::new(&CASES[0]);
        let mut running = place.start("out", "-v");
        running.wait_for(&["launched"]);
        let cut = running.interrupt();
        let left = names(&place.path("out"));
        let can_resume = cut.stderr.contains("flitcast resume");
        assert_eq!(left.is_empty(), !can_resume, "{left:?}: {}", cut.stderr);
        left.is_empty()
    });
    assert!(left_nothing, "no run was interrupted before the first byte");
}

#[test]
fn a_resume_is_interrupted_and_resumed() {
    for case in [&CASES[0], &CASES[3]] {
        let place = Place::new(case);
        let running = place.cut();
        running.signal(Signal::TERM);
        running.finish().with_code(143);
        let record = place.record();
        let again = start(["resume".as_ref(), record.as_os_str()]);
        place.wait();
        let cut = again.interrupt();
        assert_eq!(place.record(), record);
        assert_prints_resume(&cut, &record);
        resume(&record, "").ok();
        place.assert_complete();
    }
}

/// A dry run continues from the record, too, and leaves it and the receipts to the next run.
#[test]
fn a_dry_run_leaves_everything_to_the_next_run() {
    for case in [&CASES[0], &CASES[3]] {
        let place = Place::new(case);
        place.cut().kill();
        let before = snapshot(&place.path("out"));
        let dry = place.run("out", "--dry-run").ok();
        dry.stderr_has(&["going on from the record", "resuming with all PEs"]);
        assert_same(&before, &snapshot(&place.path("out")));
        place.run("out", "").ok();
        place.assert_complete();
    }
}

#[test]
fn the_same_command_sends_removed_messages_again() {
    let place = Place::new(&CASES[0]);
    place.cut().interrupt();
    for path in place.arrived().0 {
        fs::remove_dir_all(path).expect("it is there");
    }
    let again = place.run("out", "").ok();
    again.stderr_has(&["3 of 3 messages are missing"]);
    place.assert_complete();
}

#[test]
fn a_forced_repetition_removes_the_record() {
    for case in [&CASES[0], &CASES[3]] {
        let place = Place::new(case);
        place.cut().interrupt();
        let file = place.path("in").join(case.long).join("some");
        fill(&file, 10);
        let refused = place.run("out", "");
        refused.fails(1, &["changed since the run began", "--force"]);
        place.run("out", "--force").ok();
        place.assert_complete();
    }
}

#[test]
fn another_command_leaves_the_record_alone() {
    let place = Place::new(&CASES[0]);
    place.cut().interrupt();
    let record = place.record();
    let before = fs::read(&record).expect("it is there");
    fs::rename(place.path("in"), place.path("away")).expect("it is there");
    fill(&place.path("in/p3/other"), 10);
    let line = "gather --tree path:4 --input @/in --output @/out";
    place.dir.run(line).fails(2, &["out/p3", "--force"]);
    assert_eq!(fs::read(&record).expect("it is there"), before);
}

/// The record exists before the first byte, and is removed when all messages are delivered.
#[test]
fn a_round_that_is_under_way_has_a_record() {
    let place = Place::new(&CASES[1]);
    let running = place.cut();
    let record = place.record();
    let text = fs::read_to_string(&record).expect("it is there");
    assert!(text.contains("delivered = []"), "{text}");
    running.finish().ok();
    assert!(!record.exists());
    place.assert_complete();
}
