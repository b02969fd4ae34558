//! Runs that a signal ends, or that are killed: delivered messages are kept, and the run can be
//! resumed.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use flitcast_tests::files::{Kind, assert_same, fill, names, snapshot};
use flitcast_tests::processes::eventually;
use flitcast_tests::{Finished, Running, run, scratch, start};
use rustix::process::Signal;
use tempfile::TempDir;

/// An operation, with a message that takes seconds on its links and others that have arrived
/// before.
#[derive(Clone, Copy)]
pub struct Case {
    /// The operation and its options.
    pub words: &'static [&'static str],
    /// The entries of the input.
    pub entries: &'static [&'static str],
    /// The entry that is long.
    pub long: &'static str,
}

/// All five operations.
pub const CASES: [Case; 5] = [
    Case {
        words: &["scatter"],
        entries: &["p1", "p2", "p3"],
        long: "p1",
    },
    Case {
        words: &["gather"],
        entries: &["p1", "p2", "p3"],
        long: "p3",
    },
    Case {
        words: &["broadcast", "--algorithm", "child-by-child"],
        entries: &["model"],
        long: "model",
    },
    Case {
        words: &["gossip"],
        entries: &["p0", "p1", "p2", "p3"],
        long: "p3",
    },
    Case {
        words: &["exchange"],
        entries: &[
            "p0/p1", "p0/p2", "p0/p3", "p1/p0", "p1/p2", "p1/p3", "p2/p0", "p2/p1", "p2/p3",
            "p3/p0", "p3/p1", "p3/p2",
        ],
        long: "p3/p0",
    },
];

/// The input of a case, and outputs beside it.
pub struct Place<'a> {
    dir: TempDir,
    case: &'a Case,
    /// The links.
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
            fill(&dir.path().join("in").join(entry).join("some"), bytes);
        }
        Place { dir, case, link }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    #[track_caller]
    pub fn start(&self, output: &str, more: &[&str]) -> Running {
        let text = |name: &str| self.path(name).to_str().expect("it is UTF-8").to_owned();
        let (input, output) = (text("in"), text(output));
        let files = ["--input", &input, "--output", &output];
        let tree = match self.case.words[0] {
            "broadcast" => "star:4",
            _ => "path:4",
        };
        let on = ["--tree", tree, "--link", self.link];
        start([self.case.words, &on, &files, more].concat())
    }

    /// Returns what is in the output, and in its rows if it has rows.
    pub fn outputs(&self) -> Vec<PathBuf> {
        let has_rows = matches!(self.case.words[0], "gossip" | "exchange");
        let folders: Vec<PathBuf> = match has_rows {
            true => (0..4).map(|pe| self.path(&format!("out/p{pe}"))).collect(),
            false => vec![self.path("out")],
        };
        let listed = folders.iter().flat_map(fs::read_dir).flatten().flatten();
        listed.map(|entry| entry.path()).collect()
    }

    /// Returns the delivered messages, and whether another one is arriving.
    pub fn arrived(&self) -> (Vec<PathBuf>, bool) {
        let all = self.outputs();
        let named = |path: &&PathBuf, end: &str| path.to_string_lossy().ends_with(end);
        let is_hidden = |path: &&PathBuf| path.to_string_lossy().contains("/.flitcast-");
        let arrives = all.iter().any(|path| named(&path, ".partial"));
        let there = all.iter().filter(|path| !is_hidden(path)).cloned();
        (there.collect(), arrives)
    }

    /// Waits until a message is delivered and another one is arriving.
    #[track_caller]
    fn wait(&self) {
        eventually("a message is there, and another one arrives", || {
            let (there, arrives) = self.arrived();
            (!there.is_empty() && arrives).then_some(())
        });
    }

    /// Starts a run, and waits until a message is delivered and another one is arriving.
    #[track_caller]
    fn cut(&self) -> Running {
        let running = self.start("out", &[]);
        self.wait();
        running
    }

    /// Checks that the output equals that of an undisturbed run, without hidden files.
    #[track_caller]
    pub fn assert_complete(&self) {
        self.start("whole", &[]).finish().ok();
        let [whole, out] = ["whole", "out"].map(|name| {
            let mut tree = snapshot(&self.path(name));
            let folders = tree
                .values_mut()
                .filter(|node| node.kind == Kind::Directory);
            folders.for_each(|node| node.mtime = (0, 0));
            tree
        });
        assert_same(&whole, &out);
    }

    #[track_caller]
    pub fn record(&self) -> PathBuf {
        let mut records = names(&self.path("out"));
        records.retain(|name| name.starts_with(".flitcast-round-"));
        assert_eq!(records.len(), 1, "{}: {records:?}", self.case.words[0]);
        self.path("out").join(&records[0])
    }
}

/// Returns properties that distinguish entries from rewritten ones.
#[track_caller]
pub fn identities(paths: &[PathBuf]) -> Vec<(u64, i64)> {
    let found = paths.iter().map(fs::symlink_metadata);
    let found = found.map(|found| found.expect("it is there"));
    found
        .map(|found| (found.ino(), found.ctime_nsec()))
        .collect()
}

/// Checks that the command to resume was printed.
#[track_caller]
fn says_how_to_go_on(finished: &Finished, record: &Path) {
    let command = format!("to go on: flitcast resume {}", record.display());
    finished.says(&[&command]);
}

#[test]
fn what_a_signal_cuts_off_is_resumed() {
    let signals = [
        (Signal::INT, 130),
        (Signal::TERM, 143),
        (Signal::HUP, 129),
        (Signal::QUIT, 131),
        (Signal::INT, 130),
    ];
    for (case, (signal, code)) in CASES.iter().zip(signals) {
        let place = Place::new(case);
        let running = place.cut();
        running.signal(signal);
        let cut = running.finish();
        cut.fails(
            code,
            &[
                "interrupted: every process was stopped",
                "\n  delivered: ",
                ", and kept: ",
            ],
        );
        let (before, arrives) = place.arrived();
        assert!(!before.is_empty() && !arrives, "{}", case.words[0]);
        let record = place.record();
        says_how_to_go_on(&cut, &record);
        let kept = identities(&before);
        let resumed = run(["resume".as_ref(), record.as_os_str()]).ok();
        resumed.says(&["resuming with all PEs"]);
        assert_eq!(identities(&before), kept, "one was written again");
        place.assert_complete();
    }
}

/// A run that is interrupted before the first byte cannot be resumed.
#[test]
fn what_is_interrupted_before_the_first_round_leaves_no_record() {
    // On a busy machine the signal may arrive after the first byte.
    let left_nothing = (0..10).any(|_| {
        let place = Place::new(&CASES[0]);
        let mut running = place.start("out", &["-v"]);
        running.wait_for(&["launched"]);
        running.signal(Signal::INT);
        let cut = running.finish();
        assert_eq!(cut.code, Some(130), "{}", cut.stderr);
        let left = names(&place.path("out"));
        let can_resume = cut.stderr.contains("flitcast resume");
        assert_eq!(left.is_empty(), !can_resume, "{left:?}: {}", cut.stderr);
        left.is_empty()
    });
    assert!(left_nothing, "no run was interrupted before the first byte");
}

/// A resumed run can be interrupted and resumed again.
#[test]
fn a_resume_is_interrupted_and_resumed() {
    for case in [&CASES[0], &CASES[3]] {
        let place = Place::new(case);
        let running = place.cut();
        running.signal(Signal::TERM);
        assert_eq!(running.finish().code, Some(143));
        let record = place.record();
        let again = start(["resume".as_ref(), record.as_os_str()]);
        place.wait();
        again.signal(Signal::INT);
        let cut = again.finish();
        assert_eq!(cut.code, Some(130), "{}", cut.stderr);
        assert_eq!(place.record(), record);
        says_how_to_go_on(&cut, &record);
        run(["resume".as_ref(), record.as_os_str()]).ok();
        place.assert_complete();
    }
}

/// A killed coordinator can write nothing, but the record was written before the round, and
/// receipts contain the rest.
#[test]
fn what_a_killed_coordinator_leaves_is_resumed() {
    for case in &CASES {
        let place = Place::new(case);
        place.cut().kill();
        let (before, arrives) = place.arrived();
        assert!(!before.is_empty() && !arrives, "{}", case.words[0]);
        let kept = identities(&before);
        let record = place.record();
        let resumed = run(["resume".as_ref(), record.as_os_str()]).ok();
        resumed.says(&["resuming with all PEs"]);
        assert_eq!(identities(&before), kept, "one was written again");
        place.assert_complete();
    }
}

/// Users without knowledge of the record repeat the command.
#[test]
fn the_same_command_goes_on_and_says_so() {
    for (at, case) in CASES.iter().enumerate() {
        let place = Place::new(case);
        let running = place.cut();
        match at % 2 {
            0 => {
                running.kill();
            }
            _ => {
                running.signal(Signal::INT);
                assert_eq!(running.finish().code, Some(130));
            }
        }
        let (before, _) = place.arrived();
        let kept = identities(&before);
        let again = place.start("out", &[]).finish().ok();
        let record = format!("going on from the record {}/", place.path("out").display());
        again.says(&[&record, "resuming with all PEs"]);
        assert_eq!(identities(&before), kept, "one was written again");
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
        let dry = place.start("out", &["--dry-run"]).finish().ok();
        dry.says(&["going on from the record", "resuming with all PEs"]);
        assert_same(&before, &snapshot(&place.path("out")));
        place.start("out", &[]).finish().ok();
        place.assert_complete();
    }
}

/// Removed messages are sent again.
#[test]
fn the_same_command_sends_what_is_not_there_any_more() {
    let place = Place::new(&CASES[0]);
    let running = place.cut();
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, Some(130));
    for path in place.arrived().0 {
        fs::remove_dir_all(path).expect("it is there");
    }
    let again = place.start("out", &[]).finish().ok();
    again.says(&["3 of 3 messages are missing"]);
    place.assert_complete();
}

/// A repetition that sends all messages removes the record of the interrupted run.
#[test]
fn a_forced_repetition_removes_the_record() {
    for case in [&CASES[0], &CASES[3]] {
        let place = Place::new(case);
        let running = place.cut();
        running.signal(Signal::INT);
        assert_eq!(running.finish().code, Some(130));
        let file = place.path("in").join(case.long).join("some");
        fill(&file, 10);
        let refused = place.start("out", &[]).finish();
        refused.fails(1, &["changed since the run began", "--force"]);
        place.start("out", &["--force"]).finish().ok();
        place.assert_complete();
    }
}

/// A record of other messages is ignored, and stays.
#[test]
fn another_command_leaves_the_record_alone() {
    let place = Place::new(&CASES[0]);
    let running = place.cut();
    running.signal(Signal::INT);
    assert_eq!(running.finish().code, Some(130));
    let record = place.record();
    let before = fs::read(&record).expect("it is there");
    fs::rename(place.path("in"), place.path("away")).expect("it is there");
    fill(&place.path("in/p3/other"), 10);
    let [input, output] = ["in", "out"].map(|name| place.path(name).display().to_string());
    let line = [
        "gather", "--tree", "path:4", "--input", &input, "--output", &output,
    ];
    let refused = run(line);
    refused.fails(2, &["out/p3", "--force"]);
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
