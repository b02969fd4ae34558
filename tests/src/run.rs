//! Runs of the `flitcast` command. Every run has a time limit, after which its processes are killed
//! and the test fails. No process may be left after a run.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::binary::cache;
use crate::processes::{BETWEEN_LOOKS, MARK_VARIABLE, Process, marked, process_of, until};
use crate::{Report, flitcast};

/// Time limit: many times the longest run.
const TIME_LIMIT: Duration = Duration::from_secs(180);

/// Variable with the directory in which commands store their measurements of this machine.
pub const CACHE_VARIABLE: &str = "XDG_CACHE_HOME";

#[derive(Debug)]
pub struct Finished {
    /// The command, for messages.
    pub command: String,
    /// Exit status; `None` after a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    #[track_caller]
    pub fn ok(self) -> Finished {
        self.with_code(0)
    }

    #[track_caller]
    pub fn with_code(self, code: i32) -> Finished {
        self.has_code(code);
        self
    }

    /// Checks that the run failed with this exit status, and that all of these texts are on stderr.
    #[track_caller]
    pub fn fails(&self, code: i32, parts: &[&str]) {
        self.has_code(code);
        self.stderr_has(parts);
    }

    /// Checks that the run ended with this exit status, and that all of these texts are in its output.
    #[track_caller]
    pub fn ends(&self, code: i32, parts: &[&str]) {
        self.has_code(code);
        self.has(&format!("{}{}", self.stdout, self.stderr), parts);
    }

    /// Checks that all of these texts are on stderr.
    #[track_caller]
    pub fn stderr_has(&self, parts: &[&str]) {
        self.has(&self.stderr, parts);
    }

    /// Checks that all of these texts are on stdout.
    #[track_caller]
    pub fn prints(&self, parts: &[&str]) {
        self.has(&self.stdout, parts);
    }

    #[track_caller]
    fn has(&self, text: &str, parts: &[&str]) {
        for part in parts {
            assert!(
                text.contains(part),
                "{}: no `{part}` in\n{text}",
                self.command
            );
        }
    }

    #[track_caller]
    fn has_code(&self, code: i32) {
        let all = format!("{}\n{}{}", self.command, self.stdout, self.stderr);
        assert_eq!(self.code, Some(code), "{all}");
    }

    /// Parses the output of `--format json`.
    #[track_caller]
    pub fn report(&self) -> Report {
        Report::parse(&self.stdout)
    }
}

#[derive(Debug)]
pub struct Running {
    command: String,
    mark: String,
    deadline: Instant,
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Receiver<String>,
    seen: String,
}

/// Runs a command of any program to its end.
#[track_caller]
pub fn run_program(command: &mut Command) -> Finished {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Finished {
        command: format!("{command:?}"),
        code: output.status.code(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

/// Runs `flitcast` with these arguments to its end.
#[track_caller]
pub fn run<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Finished {
    start(arguments).finish()
}

/// Starts `flitcast` with these arguments.
#[track_caller]
pub fn start<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Running {
    start_with(arguments, &[])
}

/// Starts `flitcast` with these variables in its environment.
#[track_caller]
pub fn start_with<S: AsRef<OsStr>>(
    arguments: impl IntoIterator<Item = S>,
    environment: &[(&str, &Path)],
) -> Running {
    let mut command = Command::new(flitcast());
    command.args(arguments).envs(environment.iter().copied());
    begin(command)
}

/// Starts a command that runs `flitcast`, with its own environment and folder.
#[track_caller]
pub fn begin(command: Command) -> Running {
    begin_within(TIME_LIMIT, command)
}

/// Starts a command with another time limit.
#[track_caller]
pub fn begin_within(limit: Duration, mut command: Command) -> Running {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let mark = format!("{}-{number}", std::process::id());
    let shown = format!("{command:?}");
    // Measurements during tests must not influence the user's predictions.
    if !command.get_envs().any(|(name, _)| name == CACHE_VARIABLE) {
        command.env(CACHE_VARIABLE, cache());
    }
    command
        .env_remove("RUST_LOG")
        .env(MARK_VARIABLE, &mark)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("flitcast was built");
    let mut out = child.stdout.take().expect("it is piped");
    let err = BufReader::new(child.stderr.take().expect("it is piped"));
    let (sender, stderr) = mpsc::channel();
    thread::spawn(move || {
        for line in err.split(b'\n').map_while(Result::ok) {
            // The receiver is gone once the run was given up.
            let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
        }
    });
    let stdout = thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).expect("stdout is UTF-8");
        text
    });
    Running {
        command: shown,
        mark,
        deadline: Instant::now() + limit,
        child,
        stdout: Some(stdout),
        stderr,
        seen: String::new(),
    }
}

impl Running {
    /// Waits for a line on stderr that contains all of `parts`, and returns it.
    #[track_caller]
    pub fn wait_for(&mut self, parts: &[&str]) -> String {
        let is_it = |line: &str| parts.iter().all(|part| line.contains(part));
        if let Some(line) = self.seen.lines().find(|line| is_it(line)) {
            return line.to_owned();
        }
        while let Some(line) = self.next_line() {
            if is_it(&line) {
                return line;
            }
        }
        panic!("{} never said {parts:?}:\n{}", self.command, self.seen);
    }

    /// Returns whether a line with all of `parts` was read by now.
    pub fn has_printed(&self, parts: &[&str]) -> bool {
        let is_it = |line: &str| parts.iter().all(|part| line.contains(part));
        self.seen.lines().any(is_it)
    }

    /// Waits for the end, and checks that no process is left.
    #[track_caller]
    pub fn finish(mut self) -> Finished {
        let finished = self.coordinator_ends();
        // The launching process has waited for each of them.
        let left = self.processes();
        assert!(left.is_empty(), "{} has left {left:?}", self.command);
        finished
    }

    /// Waits for the end of the coordinator; other processes may be left.
    #[track_caller]
    pub fn coordinator_ends(&mut self) -> Finished {
        while self.next_line().is_some() {}
        let code = loop {
            match self.child.try_wait().expect("it is our child") {
                Some(status) => break status.code(),
                None => assert!(
                    Instant::now() < self.deadline,
                    "{} closed its stderr and did not end",
                    self.command
                ),
            }
            thread::sleep(BETWEEN_LOOKS);
        };
        let stdout = self.stdout.take().expect("taken once");
        Finished {
            command: self.command.clone(),
            code,
            stdout: stdout.join().expect("stdout could be read"),
            stderr: std::mem::take(&mut self.seen),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn processes(&self) -> Vec<Process> {
        marked(&self.mark)
    }

    /// Kills the coordinator with SIGKILL, and waits until its processes have ended as well.
    #[track_caller]
    pub fn kill(mut self) -> Finished {
        let all = self.processes();
        self.signal(Signal::KILL);
        let finished = self.coordinator_ends();
        self.all_end(&all);
        finished
    }

    /// Waits for the end of all processes. Those that were `known` are looked at by their numbers: a
    /// process that ends loses its mark before its files and their locks.
    #[track_caller]
    fn all_end(&self, known: &[Process]) {
        until("the processes of a killed coordinator are gone", || {
            let is_alive = |process: &Process| Process::is_alive(process.pid);
            self.processes().is_empty() && !known.iter().any(is_alive)
        });
    }

    /// Kills all processes at once, so that none can remove anything, and waits until they have ended.
    pub fn kill_all(mut self) {
        let all = self.processes();
        all.iter().for_each(|process| process.signal(Signal::STOP));
        // The coordinator comes last: the death of a parent continues a process.
        let (last, others): (Vec<_>, Vec<_>) = all
            .iter()
            .partition(|process| process.pid == self.pid() as i32);
        let in_order = others.into_iter().chain(last);
        in_order.for_each(|process| process.signal(Signal::KILL));
        self.coordinator_ends();
        self.all_end(&all);
    }

    /// Interrupts the coordinator as Ctrl-C does, and waits for its end.
    #[track_caller]
    pub fn interrupt(self) -> Finished {
        self.signal(Signal::INT);
        self.finish().with_code(130)
    }

    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("nobody has waited for it yet");
    }

    /// Returns the processes of the PEs, each a child of the coordinator.
    pub fn pes(&self) -> Vec<Process> {
        let coordinator = self.pid() as i32;
        let mut all = self.processes();
        all.retain(|process| process.parent == coordinator && process.pe().is_some());
        all
    }

    #[track_caller]
    pub fn pe(&self, pe: u32) -> Process {
        process_of(self.pes(), pe)
    }

    #[track_caller]
    fn next_line(&mut self) -> Option<String> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        match self.stderr.recv_timeout(left) {
            Ok(line) => {
                self.seen.push_str(&line);
                self.seen.push('\n');
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("{} takes too long:\n{}", self.command, self.seen)
            }
        }
    }
}

impl Drop for Running {
    /// Leaves no process to the tests that follow, even after a failure.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for process in self.processes() {
            process.signal(Signal::KILL);
        }
    }
}
