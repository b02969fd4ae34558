//! A real Slurm on this machine, as `deploy/lab/slurm` brings it up and takes it away, and
//! jobs on it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::lab::{Said, said};
use crate::privileges::needs_root;
use crate::processes::eventually;
use crate::{flitcast, scratch};

/// There is one on a machine.
static SLURM: Mutex<()> = Mutex::new(());

/// Many times what a job of a test takes.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// Runs `deploy/lab/slurm`.
#[track_caller]
fn script(arguments: &[&str]) -> Said {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/lab/slurm");
    said(Command::new(script).args(arguments))
}

/// A Slurm that is up, with a folder that all its nodes see. It is taken away at the end,
/// however the test goes.
#[derive(Debug)]
pub struct Slurm {
    dir: tempfile::TempDir,
    configuration: String,
    _turn: MutexGuard<'static, ()>,
}

impl Slurm {
    /// Brings it up.
    ///
    /// # Panics
    ///
    /// If it does not come up, with what is said about it: it needs root, and Slurm.
    #[track_caller]
    pub fn up(nodes: u32) -> Slurm {
        needs_root("Slurm");
        let turn = SLURM.lock().unwrap_or_else(PoisonError::into_inner);
        let said = script(&["up", &nodes.to_string()]);
        assert_eq!(
            said.code,
            Some(0),
            "Slurm does not come up: {}",
            said.stderr
        );
        let (_, configuration) = said.stdout.split_once('=').expect("up names its file");
        Slurm {
            dir: scratch(),
            configuration: configuration.trim().to_owned(),
            _turn: turn,
        }
    }

    /// A path in its folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// One of Slurm's commands, in its folder.
    #[must_use]
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

    /// What submits a job; its environment is the job's.
    #[must_use]
    pub fn job(&self, line: &str) -> Command {
        self.command("sbatch", &format!("--wait --output=out {line}"))
    }

    /// Submits that.
    #[track_caller]
    pub fn wait(&self, mut job: Command) -> Job<'_> {
        let child = job.stdout(Stdio::null()).spawn();
        Job {
            slurm: self,
            child: child.expect("sbatch is there"),
            deadline: Instant::now() + TIME_LIMIT,
        }
    }

    /// Takes it away, with all that still runs there.
    #[track_caller]
    pub fn down(self) {
        let said = script(&["down"]);
        assert_eq!(said.code, Some(0), "{}", said.stderr);
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // In a test that fails already, there is nobody to tell.
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/lab/slurm");
        let _ = Command::new(folder).arg("down").output();
    }
}

/// A job that was submitted.
#[derive(Debug)]
pub struct Job<'s> {
    slurm: &'s Slurm,
    child: Child,
    deadline: Instant,
}

impl Job<'_> {
    /// What it has said so far.
    #[must_use]
    pub fn output(&self) -> String {
        fs::read_to_string(self.slurm.path("out")).unwrap_or_default()
    }

    /// Waits until it says something.
    #[track_caller]
    pub fn wait_for(&self, words: &str) {
        eventually(words, || self.output().contains(words).then_some(()));
    }

    /// Waits for its end: its exit status, and what it has said.
    #[track_caller]
    pub fn finish(mut self) -> (Option<i32>, String) {
        loop {
            match self.child.try_wait().expect("it is our child") {
                Some(status) => return (status.code(), self.output()),
                None => assert!(
                    Instant::now() < self.deadline,
                    "the job takes longer than {TIME_LIMIT:?}: {}",
                    self.output()
                ),
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
