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
use std::path::{Path, PathBuf};

use flitcast_tests::files::{self, assert_same_below, fill, identity, names, names_if_any};
use flitcast_tests::processes::until;
use flitcast_tests::{Finished, Folder, Running, resume, scratch, start};
use rustix::process::Signal;

const TREE: &str = "\
parents = [0, 1, 2, 0]
edges = [
  { child = 1, rate = \"20mbit\", latency = \"5ms\" },
  { child = 2, rate = \"40mbit\", latency = \"5ms\" },
  { child = 3, rate = \"40mbit\", latency = \"5ms\" },
  { child = 4, rate = \"20mbit\", latency = \"5ms\" },
]
";
/// Links for tests on another tree.
const LINK: &str = "--link rate=20mbit,latency=5ms";
const LONG: usize = 6 << 20;

/// The delivered messages, each with values that change if it is written again.
type Delivered = BTreeMap<String, (u64, i64)>;

struct Files {
    dir: Folder,
}

impl Files {
    /// Creates messages of P1 to P4, of which that of `long` is long.
    #[track_caller]
    fn new(long: u32) -> Files {
        let files = Files { dir: scratch() };
        files.dir.put("tree.toml", TREE);
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
        self.dir.join("in put")
    }

    fn output(&self) -> PathBuf {
        self.dir.join("output")
    }

    #[track_caller]
    fn start(&self, line: &str) -> Running {
        let mut words = self.dir.words(&format!("{line} --output @/output --input"));
        words.push(self.dir.shown("in put"));
        start(words)
    }

    fn start_on_tree(&self, line: &str) -> Running {
        self.start(&format!("{line} --tree file:@/tree.toml"))
    }

    /// Starts a command on the tree and kills a PE once a message is delivered and the long one is
    /// arriving; returns its end, and the messages delivered before.
    fn killing(&self, line: &str, there: &str, pe: u32) -> (Finished, Delivered) {
        let running = self.start_on_tree(line);
        self.wait_for(there);
        let before = self.there();
        kill(&running, pe);
        (running.finish(), before)
    }

    /// Waits until these messages are delivered and another one is arriving.
    #[track_caller]
    fn wait_for(&self, there: &str) {
        until("a message is there, and the long one arrives", || {
            let names = names_if_any(&self.output());
            let is_there = |name| names.iter().any(|there| there == name);
            let arrives = names.iter().any(|name| name.ends_with(".partial"));
            there.split_whitespace().all(is_there) && arrives
        });
    }

    /// Waits until more of the long message arrives than has.
    fn wait_for_more(&self) {
        let arrived = || {
            let all = names(&self.output()).into_iter();
            let partial = all.filter(|name| name.ends_with(".partial"));
            let long = partial.map(|name| self.output().join(name).join("long"));
            let bytes = long.map(|path| fs::metadata(path).map_or(0, |file| file.len()));
            bytes.sum::<u64>()
        };
        let before = arrived();
        until("more of the long message arrives", || arrived() > before);
    }

    #[track_caller]
    fn record(&self) -> PathBuf {
        files::record(&self.output())
    }

    #[track_caller]
    fn resume(&self, more: &str) -> Finished {
        resume(&self.record(), more)
    }

    fn there(&self) -> Delivered {
        let mut names = names(&self.output());
        names.retain(|name| !name.starts_with('.'));
        let names = names.into_iter();
        names
            .map(|name| (name.clone(), identity(&self.output().join(name))))
            .collect()
    }

    /// Checks that exactly these messages are delivered completely, and those of `before`
    /// unchanged.
    #[track_caller]
    fn assert_there(&self, messages: &[&str], before: &Delivered) {
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
    fn assert_complete(&self, before: &Delivered) {
        self.assert_there(&["p1", "p2", "p3", "p4"], before);
        assert_eq!(names(&self.output()).len(), 4, "the record is gone");
    }

    fn with_input_path(&self, prefix: &str, pe: u32) -> String {
        format!("{prefix}{}", self.input().join(format!("p{pe}")).display())
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

fn edit(path: &Path, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).expect("it is there");
    fs::write(path, change(text)).expect("it can be written");
}
