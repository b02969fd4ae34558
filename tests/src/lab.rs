//! The network lab of `deploy/lab/up` and `deploy/lab/down`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::run::run_program;
use crate::{Finished, files, flitcast};

/// There is one lab on a machine.
static LAB: Mutex<()> = Mutex::new(());

/// Returns the command of `up` or `down`.
pub fn script<S: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = S>) -> Command {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/lab");
    let mut command = Command::new(Path::new(folder).join(name));
    command.args(arguments);
    if name == "up" {
        command.arg("--flitcast").arg(flitcast());
    }
    command
}

/// Exclusive use of the lab.
pub struct Turn(#[expect(dead_code, reason = "held, not read")] MutexGuard<'static, ()>);

impl Turn {
    /// Waits until no other test uses the lab. A test that has failed has cleaned up as well.
    pub fn take() -> Turn {
        Turn(LAB.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A lab that is up. Dropping it takes the lab down.
pub struct Lab {
    pub cluster_file: PathBuf,
    is_up: bool,
    _turn: Turn,
}

impl Lab {
    /// Builds the lab with these arguments.
    #[track_caller]
    pub fn up(line: &str) -> Lab {
        let turn = Turn::take();
        let finished = run_program(&mut script("up", line.split_whitespace())).ok();
        let file = finished.stdout.split_whitespace().last();
        let file = file.expect("up names the file");
        Lab {
            cluster_file: file.into(),
            is_up: true,
            _turn: turn,
        }
    }

    /// Returns the arguments of a run in the lab.
    pub fn arguments(&self, line: &str) -> Vec<String> {
        let file = self.cluster_file.to_str().expect("its path is UTF-8");
        let words = line.split_whitespace().chain(["--cluster", file]);
        words.map(str::to_owned).collect()
    }

    /// Connects one host to an address at which no process listens, and returns the result.
    #[track_caller]
    pub fn call(&self, from: &str, address: &str) -> Call {
        let script = format!("exec 3<>/dev/tcp/{address}/9");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", from, "bash", "-c", &script]);
        let finished = run_program(command.env("LC_ALL", "C"));
        let is = |words: &str| finished.stderr.contains(words);
        if is("Connection refused") {
            Call::Answered
        } else if is("unreachable") || is("No route to host") {
            Call::NoWay
        } else {
            panic!("{from} calls {address}: {finished:?}")
        }
    }

    #[track_caller]
    pub fn down(mut self) -> Finished {
        self.is_up = false;
        run_program(&mut script("down", [""; 0]))
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if self.is_up {
            // The test has failed already, so the result is ignored.
            let _ = script("down", [""; 0]).output();
        }
    }
}

/// The result of connecting to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// The host refused the connection.
    Answered,
    /// The host cannot be reached.
    NoWay,
}

/// Returns the named network namespaces of this machine.
#[track_caller]
pub fn namespaces() -> Vec<String> {
    let finished = run_program(Command::new("ip").args(["netns", "list"]));
    // The number of the namespace may follow the name.
    let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let mut names: Vec<String> = finished.stdout.lines().filter_map(first).collect();
    names.sort();
    names
}

/// Returns the interfaces of this machine outside of all namespaces.
#[track_caller]
pub fn interfaces() -> Vec<String> {
    files::names(Path::new("/sys/class/net"))
}
