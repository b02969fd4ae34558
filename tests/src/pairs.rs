//! Files of any operation: the messages between pairs of PEs, and those that have arrived.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::files::{fill, identity, names, names_if_any, record, snapshot, wait_for_partial};
use crate::processes::until;
use crate::{Finished, Folder, Running, resume, scratch};

/// A message: its source and its destination.
pub type Pair = (u32, u32);

/// The directories of a run.
pub struct Pairs {
    dir: Folder,
    operation: String,
    pes: u32,
}

impl Pairs {
    /// Creates empty directories for an operation, or an alias of one. Its line may name another source or
    /// destination than P0.
    #[track_caller]
    pub fn new(operation: &str, pes: u32) -> Pairs {
        let pairs = Pairs {
            dir: scratch(),
            operation: operation.to_owned(),
            pes,
        };
        fs::create_dir(pairs.input()).expect("a scratch directory can be written to");
        pairs
    }

    /// Creates directories in which each message is a file or a folder of `bytes` bytes.
    #[track_caller]
    pub fn filled(operation: &str, pes: u32, bytes: impl Fn(Pair) -> usize) -> Pairs {
        let pairs = Pairs::new(operation, pes);
        for (from, to) in pairs.all() {
            let entry = pairs.entry((from, to));
            let is_input = entry == pairs.input();
            if entry.exists() && !is_input {
                continue;
            }
            let file = match (from + to) % 2 {
                0 if !is_input => entry,
                _ => entry.join("below/some"),
            };
            fill(&file, bytes((from, to)));
        }
        pairs
    }

    /// Returns the only PE that has messages for others, or that gets them, if there is one.
    fn root(&self) -> u32 {
        let (_, root) = self.operation.rsplit_once(" P").unwrap_or(("", "0"));
        root.parse().expect("it is a PE")
    }

    /// Returns the names of a message below the input and below the output.
    fn ends(&self, (from, to): Pair) -> [String; 2] {
        let [from, to] = [from, to].map(|pe| format!("p{pe}"));
        match self.operation.split(' ').next() {
            Some("scatter") => [to.clone(), to],
            Some("gather") => [from.clone(), from],
            Some("broadcast") => [String::new(), to],
            Some("gossip" | "allgather") => [from.clone(), format!("{to}/{from}")],
            _ => [format!("{from}/{to}"), format!("{to}/{from}")],
        }
    }

    /// Returns whether the messages for each PE arrive in a folder.
    fn has_rows(&self) -> bool {
        self.ends((0, 1))[1].contains('/')
    }

    pub fn dir(&self) -> &Folder {
        &self.dir
    }

    pub fn input(&self) -> PathBuf {
        self.dir().join("in")
    }

    pub fn output(&self) -> PathBuf {
        self.dir().join("out")
    }

    /// Returns the path of a message in the input; it is the same for all destinations of a copy.
    pub fn entry(&self, pair: Pair) -> PathBuf {
        let [sent, _] = self.ends(pair);
        match sent.is_empty() {
            true => self.input(),
            false => self.input().join(sent),
        }
    }

    /// Returns all messages of the operation.
    pub fn all(&self) -> Vec<Pair> {
        self.among(|_| true)
    }

    /// Returns all messages between two PEs for which `is_meant` holds.
    pub fn among(&self, is_meant: impl Fn(u32) -> bool) -> Vec<Pair> {
        let pes = || (0..self.pes).filter(|pe| is_meant(*pe));
        let row = |from| pes().map(move |to| (from, to));
        let root = self.root();
        let is_message = |(from, to): &Pair| match self.operation.split(' ').next() {
            Some("scatter" | "broadcast") => *from == root,
            Some("gather") => *to == root,
            _ => true,
        };
        let pairs = pes().flat_map(row).filter(|(from, to)| from != to);
        pairs.filter(is_message).collect()
    }

    fn line(&self, more: &str) -> String {
        format!("{} --input @/in --output @/out {more}", self.operation)
    }

    #[track_caller]
    pub fn run(&self, more: &str) -> Finished {
        self.dir.run(&self.line(more))
    }

    /// Starts the operation, waits until a message is arriving (and another one has arrived, in a gossip or
    /// an exchange), and kills a PE.
    #[track_caller]
    pub fn kill(&self, pe: u32, more: &str) -> Running {
        let running = self.dir.start(&self.line(more));
        match self.has_rows() {
            false => wait_for_partial(&self.output()),
            true => until("a message is there, and another one arrives", || {
                let rows = (0..self.pes).map(|pe| self.output().join(format!("p{pe}")));
                let names = || rows.clone().flat_map(|row| names_if_any(&row));
                let arrives = |name: &String| name.starts_with('.');
                names().any(|name| arrives(&name)) && !names().all(|name| arrives(&name))
            }),
        }
        running.pe(pe).signal(Signal::KILL);
        running
    }

    /// Returns the messages that have arrived, each with values that change if it is written again.
    #[track_caller]
    pub fn there(&self) -> BTreeMap<Pair, (u64, i64)> {
        let mut there = BTreeMap::new();
        let mut others: BTreeSet<PathBuf> = BTreeSet::new();
        for name in names_if_any(&self.output()) {
            let path = self.output().join(&name);
            match self.has_rows() && path.is_dir() {
                true => others.extend(names(&path).iter().map(|name| path.join(name))),
                false if name.starts_with(".flitcast-round-") => {}
                false => drop(others.insert(path)),
            }
        }
        for pair in self.all() {
            let [_, received] = self.ends(pair);
            let (sent, received) = (self.entry(pair), self.output().join(received));
            if !others.remove(&received) {
                continue;
            }
            match sent.is_dir() {
                true => assert_eq!(snapshot(&sent), snapshot(&received)),
                false => assert!(
                    fs::read(&sent).ok() == fs::read(&received).ok(),
                    "{received:?}"
                ),
            }
            there.insert(pair, identity(&received));
        }
        assert!(others.is_empty(), "no messages: {others:?}");
        there
    }

    /// Checks that exactly these messages have arrived, complete.
    #[track_caller]
    pub fn assert_there(&self, mut expected: Vec<Pair>) {
        expected.sort();
        let there = self.there();
        assert_eq!(there.into_keys().collect::<Vec<_>>(), expected);
    }

    /// Checks that a round failed after at least the messages in `expected` had arrived, and that
    /// `flitcast resume` delivers the rest without sending any of them again.
    #[track_caller]
    pub fn assert_resumed(&self, finished: &Finished, expected: &[Pair]) {
        finished.fails(1, &[]);
        let before = self.there();
        for pe in (0..self.pes).filter(|_| self.has_rows()) {
            let is_there = before.keys().any(|(_, to)| *to == pe);
            let exists = self.output().join(format!("p{pe}")).exists();
            assert_eq!(exists, is_there, "nothing empty for P{pe}");
        }
        for pair in expected {
            assert!(before.contains_key(pair), "{pair:?}: {}", finished.stderr);
        }
        assert!(before.len() < self.all().len(), "the round failed");
        resume(&record(&self.output()), "--revive").ok();
        self.assert_there(self.all());
        let after = self.there();
        for (pair, written) in &before {
            assert_eq!(after.get(pair), Some(written), "{pair:?} was sent again");
        }
        let mut left = names(&self.output());
        left.retain(|name| name.starts_with('.'));
        assert!(left.is_empty(), "{left:?}");
    }
}
