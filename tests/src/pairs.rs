//! Files of a gossip or an exchange: the messages of each pair of PEs, and those that have arrived.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use rustix::process::Signal;

use crate::files::{fill, identity, names, names_if_any, record, snapshot};
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
    /// Creates empty directories for `gossip` or `exchange`, or an alias of these.
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

    /// Creates directories in which each PE has a file or a folder of `bytes` bytes for each other
    /// PE.
    #[track_caller]
    pub fn filled(operation: &str, pes: u32, bytes: impl Fn(Pair) -> usize) -> Pairs {
        let pairs = Pairs::new(operation, pes);
        for (from, to) in pairs.all() {
            let entry = pairs.entry((from, to));
            if !entry.exists() {
                let file = match (from + to) % 2 {
                    0 => entry,
                    _ => entry.join("below/some"),
                };
                fill(&file, bytes((from, to)));
            }
        }
        pairs
    }

    /// Returns the directory that contains everything.
    pub fn dir(&self) -> &Folder {
        &self.dir
    }

    /// Returns the input directory.
    pub fn input(&self) -> PathBuf {
        self.dir().join("in")
    }

    /// Returns the output directory.
    pub fn output(&self) -> PathBuf {
        self.dir().join("out")
    }

    /// Returns the path of a message in the input; in a gossip it is the same for all destinations.
    pub fn entry(&self, (from, to): Pair) -> PathBuf {
        let row = self.input().join(format!("p{from}"));
        match self.operation.as_str() {
            "gossip" | "allgather" => row,
            _ => row.join(format!("p{to}")),
        }
    }

    /// Returns all messages between two different PEs.
    pub fn all(&self) -> Vec<Pair> {
        self.among(|_| true)
    }

    /// Returns all messages between two PEs for which `is_meant` holds.
    pub fn among(&self, is_meant: impl Fn(u32) -> bool) -> Vec<Pair> {
        let pes = || (0..self.pes).filter(|pe| is_meant(*pe));
        let row = |from| pes().map(move |to| (from, to));
        let pairs = pes().flat_map(row);
        pairs.filter(|(from, to)| from != to).collect()
    }

    fn line(&self, more: &str) -> String {
        format!("{} --input @/in --output @/out {more}", self.operation)
    }

    /// Runs the operation to its end.
    #[track_caller]
    pub fn run(&self, more: &str) -> Finished {
        self.dir.run(&self.line(more))
    }

    /// Starts the operation, waits until one message has arrived and another is arriving, and kills
    /// a PE.
    #[track_caller]
    pub fn kill(&self, pe: u32, more: &str) -> Running {
        let running = self.dir.start(&self.line(more));
        until("a message is there, and another one arrives", || {
            let names = || (0..self.pes).flat_map(|pe| self.names(pe));
            let arrives = |name: &String| name.starts_with('.');
            names().any(|name| arrives(&name)) && !names().all(|name| arrives(&name))
        });
        running.pe(pe).signal(Signal::KILL);
        running
    }

    fn names(&self, pe: u32) -> Vec<String> {
        names_if_any(&self.folder(pe))
    }

    /// Returns the folder where the messages for a PE arrive.
    fn folder(&self, pe: u32) -> PathBuf {
        self.output().join(format!("p{pe}"))
    }

    /// Returns the messages that have arrived, each with values that change if it is written again.
    ///
    /// # Panics
    ///
    /// Panics if a message differs from the one sent, or if there is any other file.
    #[track_caller]
    pub fn there(&self) -> BTreeMap<Pair, (u64, i64)> {
        let mut there = BTreeMap::new();
        for to in 0..self.pes {
            for name in self.names(to) {
                let from = name.strip_prefix('p').and_then(|from| from.parse().ok());
                let from: u32 = from.unwrap_or_else(|| panic!("p{to}/{name} is no message"));
                assert_ne!(from, to, "nobody's own");
                let (sent, came) = (self.entry((from, to)), self.folder(to).join(&name));
                match sent.is_dir() {
                    true => assert_eq!(snapshot(&sent), snapshot(&came)),
                    false => assert!(fs::read(&sent).ok() == fs::read(&came).ok(), "{came:?}"),
                }
                there.insert((from, to), identity(&came));
            }
        }
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
        for pe in 0..self.pes {
            let is_there = before.keys().any(|(_, to)| *to == pe);
            let exists = self.folder(pe).exists();
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
