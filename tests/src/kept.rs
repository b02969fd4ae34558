//! A running cluster of `flitcast up` that only the test sees.

use std::path::PathBuf;
use std::process::Command;

use crate::files::names;
use crate::net::own_net;
use crate::processes::{Process, process_of};
use crate::run::begin;
use crate::{Finished, Folder, Running, flitcast, scratch};

/// A cluster file and the running cluster. Dropping it ends the cluster.
pub struct Kept {
    pub dir: Folder,
    /// The commands that started it; their processes are those of the cluster.
    up: Vec<Running>,
}

impl Kept {
    /// Creates the file: `more` comes before the `[[pe]]` sections, and `of` returns further keys
    /// of each.
    #[track_caller]
    pub fn new(pes: usize, more: &str, of: impl Fn(usize) -> String) -> Kept {
        let dir = scratch();
        let net = own_net();
        let mut text = format!("name = \"kept\"\ncoordinator = \"{net}.100\"\n{more}\n");
        for pe in 0..pes {
            let (address, of) = (pe + 1, of(pe));
            text += &format!("[[pe]]\nname = \"h{pe}\"\naddress = \"{net}.{address}\"\n{of}\n");
        }
        dir.put("cluster.toml", text);
        std::fs::create_dir(dir.join("run")).expect("it can be");
        Kept {
            dir,
            up: Vec::new(),
        }
    }

    /// Creates a cluster of P0 with P1 and P2, and P3 below P1.
    #[track_caller]
    pub fn tree() -> Kept {
        let parents = ["", "parent = \"h0\"", "parent = \"h0\"", "parent = \"h1\""];
        Kept::new(4, "", |pe| parents[pe].to_owned())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Starts a command in its folder; `FILE` is the cluster file.
    #[track_caller]
    pub fn start(&self, line: &str) -> Running {
        let mut command = Command::new(flitcast());
        let words = line.split_whitespace();
        command
            .args(words.map(|word| word.replace("FILE", "cluster.toml")))
            .current_dir(self.dir.path())
            .env("XDG_RUNTIME_DIR", self.path("run"));
        begin(command)
    }

    /// Runs a command in its folder that must leave no process.
    #[track_caller]
    pub fn run(&self, line: &str) -> Finished {
        self.start(line).finish()
    }

    #[track_caller]
    pub fn up(&mut self, line: &str) -> Finished {
        let mut up = self.start(line);
        let finished = up.coordinator_ends();
        self.keep([up]);
        finished
    }

    /// Starts the cluster twice at the same time.
    pub fn up_twice(&mut self, line: &str) -> [Finished; 2] {
        let mut both = [self.start(line), self.start(line)];
        let finished = both.each_mut().map(Running::coordinator_ends);
        self.keep(both);
        finished
    }

    /// Keeps the commands whose processes run; they belong to this cluster.
    fn keep(&mut self, up: impl IntoIterator<Item = Running>) {
        self.up.retain(|before| !before.processes().is_empty());
        self.up.extend(up);
    }

    pub fn processes(&self) -> Vec<Process> {
        self.up.iter().flat_map(Running::processes).collect()
    }

    #[track_caller]
    pub fn pe(&self, pe: u32) -> Process {
        process_of(self.processes(), pe)
    }

    /// Returns the daemon.
    #[track_caller]
    pub fn keeper(&self) -> Process {
        let all = self.processes();
        let keeps = |process: &&Process| process.arguments.iter().any(|word| word == "keep");
        all.iter().find(keeps).expect("it has one").clone()
    }

    /// Returns the folders of running clusters of its user.
    pub fn known(&self) -> Vec<String> {
        let mut names = names(&self.path("run/flitcast"));
        names.retain(|name| name.starts_with("up-"));
        names
    }
}
