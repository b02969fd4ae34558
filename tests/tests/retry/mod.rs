//! Recovery from failed PEs: `--retry` and `flitcast resume`, on files, with real processes that
//! are killed during a round.
//!
//! The tree is P0 - P1 - P2 - P3, and P4 below P0. P2's message is long for its link, so that there
//! is time to kill a process while it is under way. The edges below P0's are faster and all have a
//! latency. So a scatter's order, which depends on the measurements, is P3, P2, P1, P4 on any
//! machine.

mod gather;
mod held;
mod interrupted;
mod network;
mod prefixes;
mod receipts;
mod record;
mod scatter;
mod versions;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use flitcast_tests::files::{assert_same_below, fill, names};
use flitcast_tests::processes::eventually;
use flitcast_tests::{Finished, Running, run, scratch, start};
use rustix::process::Signal;
use tempfile::TempDir;

const TREE: &str = "\
parents = [0, 1, 2, 0]
edges = [
  { child = 1, rate = \"20mbit\", latency = \"20ms\" },
  { child = 2, rate = \"40mbit\", latency = \"20ms\" },
  { child = 3, rate = \"40mbit\", latency = \"20ms\" },
  { child = 4, rate = \"20mbit\", latency = \"20ms\" },
]
";
/// Links for tests on another tree.
const LINK: [&str; 2] = ["--link", "rate=20mbit,latency=20ms"];
const LONG: usize = 6 << 20;

/// Directories of files to be moved.
struct Files {
    dir: TempDir,
}

impl Files {
    /// Creates messages of P1 to P4, of which that of `long` is long.
    #[track_caller]
    fn new(long: u32) -> Files {
        let files = Files { dir: scratch() };
        fs::write(files.tree(), TREE).expect("it can be written");
        for pe in 1..=4 {
            let message = files.input().join(format!("p{pe}"));
            fill(&message.join("some"), 50_000);
            if pe == long {
                fill(&message.join("long"), LONG);
            }
        }
        files
    }

    fn input(&self) -> PathBuf {
        self.dir.path().join("in put")
    }

    fn output(&self) -> PathBuf {
        self.dir.path().join("output")
    }

    fn tree(&self) -> PathBuf {
        self.dir.path().join("tree.toml")
    }

    #[track_caller]
    fn start(&self, operation: &str, more: &[&str]) -> Running {
        let text = |path: PathBuf| path.to_str().expect("it is UTF-8").to_owned();
        let (input, output) = (text(self.input()), text(self.output()));
        let files = ["--input", &input, "--output", &output];
        let all = [operation].into_iter().chain(files);
        start(all.chain(more.iter().copied()))
    }

    #[track_caller]
    fn start_on_tree(&self, operation: &str, more: &[&str]) -> Running {
        let tree = format!("file:{}", self.tree().display());
        self.start(operation, &[&["--tree", &tree], more].concat())
    }

    /// Waits until these messages are delivered and another one is arriving.
    #[track_caller]
    fn wait_for(&self, there: &[&str]) {
        eventually("a message is there, and the long one arrives", || {
            if !self.output().is_dir() {
                return None;
            }
            let names = names(&self.output());
            let is_there = |name: &&str| names.iter().any(|there| there == name);
            let arrives = names.iter().any(|name| name.ends_with(".partial"));
            (there.iter().all(is_there) && arrives).then_some(())
        });
    }

    /// Waits until more of the long message arrives than has.
    #[track_caller]
    fn wait_for_more(&self) {
        let arrived = || {
            let all = names(&self.output()).into_iter();
            let partial = all.filter(|name| name.ends_with(".partial"));
            let long = partial.map(|name| self.output().join(name).join("long"));
            long.map(|path| fs::metadata(path).map_or(0, |file| file.len()))
                .sum::<u64>()
        };
        let before = arrived();
        eventually("more of the long message arrives", || {
            (arrived() > before).then_some(())
        });
    }

    #[track_caller]
    fn record(&self) -> PathBuf {
        let mut names = names(&self.output());
        names.retain(|name| name.starts_with(".flitcast-round-"));
        assert_eq!(names.len(), 1, "{names:?}");
        self.output().join(&names[0])
    }

    /// Continues from the record.
    #[track_caller]
    fn resume(&self, more: &[&str]) -> Finished {
        let record = self.record();
        let record = record.to_str().expect("it is UTF-8");
        run(["resume", record].iter().chain(more))
    }

    /// Returns the delivered messages, each with values that change if it is written again.
    fn there(&self) -> BTreeMap<String, (u64, i64)> {
        let mut names = names(&self.output());
        names.retain(|name| !name.starts_with('.'));
        let id = |name: &String| {
            let found = fs::metadata(self.output().join(name)).expect("it is there");
            (found.ino(), found.ctime_nsec())
        };
        names.iter().map(|name| (name.clone(), id(name))).collect()
    }

    /// Checks that exactly these messages are delivered completely, and those of `before`
    /// unchanged.
    #[track_caller]
    fn assert_there(&self, messages: &[&str], before: &BTreeMap<String, (u64, i64)>) {
        let there = self.there();
        let names: Vec<&str> = there.keys().map(String::as_str).collect();
        assert_eq!(names, messages);
        for name in names {
            assert_same_below(&self.input().join(name), &self.output().join(name));
        }
        for (name, id) in before {
            assert_eq!(there.get(name), Some(id), "{name} was written again");
        }
    }

    /// Checks that all messages are delivered, and nothing else is there.
    #[track_caller]
    fn assert_complete(&self, before: &BTreeMap<String, (u64, i64)>) {
        self.assert_there(&["p1", "p2", "p3", "p4"], before);
        assert_eq!(names(&self.output()).len(), 4, "the record is gone");
    }

    fn says_input(&self, what: &str, pe: u32) -> String {
        format!("{what}{}", self.input().join(format!("p{pe}")).display())
    }
}

#[track_caller]
fn kill(running: &Running, pe: u32) {
    running.pe(pe).signal(Signal::KILL);
}

/// Returns the numbers in a list of a report.
#[track_caller]
fn numbers(finished: &Finished, pointer: &str) -> Vec<u64> {
    let report = finished.report();
    let list = report.list(pointer).iter();
    list.map(|n| n.as_u64().expect("a number")).collect()
}

/// Changes a file's text.
#[track_caller]
fn edit(path: &Path, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).expect("it is there");
    fs::write(path, change(text)).expect("it can be written");
}
