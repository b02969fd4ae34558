//! A real Slurm on this machine, started and stopped by `deploy/lab/slurm`, and its jobs.

use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::processes::until;
use crate::run::{begin, run_program};
use crate::{Finished, Folder, Running, flitcast, scratch};

/// There is one Slurm on a machine.
static SLURM: Mutex<()> = Mutex::new(());

/// Runs `deploy/lab/slurm`.
#[track_caller]
fn script(arguments: &[&str]) -> Finished {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/lab/slurm");
    run_program(Command::new(script).args(arguments))
}

/// A running Slurm with a folder that all its nodes see. Dropping it stops Slurm.
pub struct Slurm {
    /// Folder that all nodes see.
    pub dir: Folder,
    configuration: String,
    _turn: MutexGuard<'static, ()>,
}

impl Slurm {
    /// Starts Slurm.
    #[track_caller]
    pub fn up(nodes: u32) -> Slurm {
        let turn = SLURM.lock().unwrap_or_else(PoisonError::into_inner);
        let finished = script(&["up", &nodes.to_string()]).ok();
        let (_, configuration) = finished.stdout.split_once('=').expect("up names its file");
        Slurm {
            dir: scratch(),
            configuration: configuration.trim().to_owned(),
            _turn: turn,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns one of Slurm's commands, in its folder.
    pub fn command(&self, name: impl AsRef<OsStr>, line: &str) -> Command {
        let mut command = Command::new(name);
        command
            .args(line.split_whitespace())
            .current_dir(self.dir.path())
            .env("SLURM_CONF", &self.configuration)
            .env("FLITCAST", flitcast());
        command
    }

    /// Submits a job; its output is in `out`.
    #[track_caller]
    pub fn submit(&self, line: &str) -> Job<'_> {
        self.wait(self.job(line))
    }

    /// Returns the command that submits a job; its environment becomes the job's.
    pub fn job(&self, line: &str) -> Command {
        self.command("sbatch", &format!("--wait --output=out {line}"))
    }

    /// Submits a job with this command.
    #[track_caller]
    pub fn wait(&self, job: Command) -> Job<'_> {
        Job {
            slurm: self,
            running: begin(job),
        }
    }

    /// Stops Slurm with all its processes, as dropping it does. Then `check` runs before another test starts one.
    #[track_caller]
    pub fn down_then(self, check: impl FnOnce()) {
        script(&["down"]).ok();
        check();
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // The test has failed already, so the result is ignored.
        script(&["down"]);
    }
}

/// A submitted job.
pub struct Job<'s> {
    slurm: &'s Slurm,
    running: Running,
}

impl Job<'_> {
    /// Returns its output so far.
    pub fn output(&self) -> String {
        fs::read_to_string(self.slurm.path("out")).unwrap_or_default()
    }

    /// Waits until its output contains `words`.
    #[track_caller]
    pub fn wait_for(&self, words: &str) {
        until(words, || self.output().contains(words));
    }

    /// Waits for its end; returns its exit status and its output.
    #[track_caller]
    pub fn finish(mut self) -> (Option<i32>, String) {
        (self.running.coordinator_ends().code, self.output())
    }
}
