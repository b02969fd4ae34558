//! The supervisors between a PE and the command that it runs, so that no process of the command
//! outlives the PE, however that ends.
//!
//! There are two separate processes (`flitcast leash`), one below the other: the upper one starts the
//! lower one, and that one starts the command ([`Stage`]). A supervisor whose parent ends, for any
//! reason, reads the end of its standard input, and ends what is below it. A supervisor whose child
//! ends adopts the remaining descendants, even those that have left the group, the session or their
//! parents, and ends them. So either may be killed: the other one ends everything. Neither the name nor
//! the command line of the two contains the program's name: `pkill flitcast` ends PEs, and these then
//! their commands. If both are killed at once, the command's own process ends by its parent-death
//! signal, and `lock.rs` finds the others.
//!
//! Their output is one line, which the lower one writes if it can: how the command ended.

mod command_supervisor;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{End, Run, ToPe};
use flitcast_proto::wire::{LENGTH_BYTES, MAX_CONTROL_FRAME, frame_length};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::lock::within;
use crate::limits::{COMMAND_REASON_BYTES, DYING, ENDING_OF_COMMANDS, STOPPED_SUPERVISOR};
use crate::system::children::{self, PROGRAM, Started};
use crate::system::processes::{Process, named};

pub use command_supervisor::CommandSupervisor;

/// The process name of supervisors, and the beginning of their command line.
pub const NAME: &str = "leash";

/// The reason why a supervisor's wait is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    /// The child process has ended.
    Ended,
    /// The launcher is gone, or has requested the end of the command.
    Requested,
    /// The child process reached its time limit.
    Late,
}

/// The events around a supervisor, after the order on its standard input.
struct Events {
    sender: mpsc::Sender<Over>,
    receiver: mpsc::Receiver<Over>,
}

impl Events {
    /// Begins to receive events, and to adopt orphaned descendants.
    fn listen() -> io::Result<Events> {
        children::be_called(NAME);
        children::adopt_orphans()?;
        children::continue_when_parent_ends()?;
        let (sender, receiver) = mpsc::channel(1);
        for kind in [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ] {
            let (mut signal, sender) = (signal(kind)?, sender.clone());
            tokio::spawn(async move {
                signal.recv().await;
                let _ = sender.send(Over::Requested).await;
            });
        }
        let stdin_sender = sender.clone();
        thread::spawn(move || {
            let mut ignored = [0; 64];
            while matches!(io::stdin().read(&mut ignored), Ok(1..)) {}
            let _ = stdin_sender.blocking_send(Over::Requested);
        });
        Ok(Events { sender, receiver })
    }

    /// Waits until a process has ended, its end was requested, or its time limit is reached. The
    /// process is not reaped, so that no other one gets its number.
    async fn until_ended(&mut self, process: Started, limit: Option<Duration>) -> Over {
        let sender = self.sender.clone();
        thread::spawn(move || {
            process.wait();
            let _ = sender.blocking_send(Over::Ended);
        });
        let event = match limit {
            Some(limit) => timeout(limit, self.receiver.recv()).await,
            None => Ok(self.receiver.recv().await),
        };
        event.map_or(Over::Late, |event| event.unwrap_or(Over::Requested))
    }
}

/// The report about a supervisor that was stopped for too long.
pub const STOOD_STILL: &str = "the supervisor of the command was stopped by a signal for 3 s, and was killed with the command";

/// Waits until a supervisor has been stopped for [`STOPPED_SUPERVISOR`] while this process ran.
pub async fn stands_still(supervisor: Option<Started>) {
    const LOOKS: u32 = 6;
    let Some(supervisor) = supervisor else {
        return std::future::pending().await;
    };
    let mut stopped = 0;
    while stopped < LOOKS {
        sleep(STOPPED_SUPERVISOR / LOOKS).await;
        let still = supervisor.is_stopped();
        stopped = if still { stopped + 1 } else { 0 };
    }
}

/// Ends all child processes, and then those that were their children. Returns those that are left. All
/// processes started from here have been waited for before.
fn end_children() -> Vec<Process> {
    let all_ended = within(DYING, || {
        let is_left = children::are_left();
        if is_left {
            Process::children().iter().for_each(Process::kill);
        }
        !is_left
    });
    match all_ended {
        true => Vec::new(),
        false => Process::children(),
    }
}

/// Reads the order of a supervisor: a frame on standard input. On a command line all users could read
/// it, and `pkill` could match the command's name.
pub fn order() -> io::Result<Vec<u8>> {
    // No byte after the frame is read.
    let mut input = io::stdin().lock();
    let mut prefix = [0; LENGTH_BYTES];
    input.read_exact(&mut prefix)?;
    let length = frame_length(prefix, MAX_CONTROL_FRAME).map_err(io::Error::other)?;
    let mut frame = vec![0; LENGTH_BYTES + length];
    frame[..LENGTH_BYTES].copy_from_slice(&prefix);
    input.read_exact(&mut frame[LENGTH_BYTES..])?;
    Ok(frame)
}

/// Returns the frame with the order of a supervisor.
pub fn put(run: &Run) -> Vec<u8> {
    let mut frame = Vec::new();
    ToPe::Run(run.clone()).put(&mut frame);
    frame
}

fn parse(frame: &[u8]) -> io::Result<Run> {
    let body = frame.get(LENGTH_BYTES..).unwrap_or_default();
    match ToPe::parse(body).map_err(io::Error::other)? {
        ToPe::Run(run) => Ok(run),
        other => Err(io::Error::other(other.kind())),
    }
}

/// Returns the arguments of a supervisor.
pub fn arguments(pe: PeId) -> [String; 3] {
    [NAME.to_owned(), "--pe".to_owned(), pe.0.to_string()]
}

/// Describes the end of a command whose supervisor has ended.
pub fn ended_with(supervisor: ExitStatus) -> String {
    format!("the supervisor of the command ended ({supervisor}), and the command with it")
}

fn report_end(end: &End) -> io::Result<()> {
    let line = match end {
        End::Exited(code) => format!("exited {code}\n"),
        End::Signalled(signal) => format!("signalled {signal}\n"),
        End::Failed(why) => format!("failed {}\n", why.replace('\n', " ")),
    };
    // In one write, so that the line is complete or absent.
    let mut out = io::stdout();
    out.write_all(line.as_bytes())?;
    out.flush()
}

/// Parses the line that a supervisor has written.
pub fn parse_end(line: &str) -> Option<End> {
    let (how, rest) = line.strip_suffix('\n')?.split_once(' ')?;
    match how {
        "exited" => Some(End::Exited(rest.parse().ok()?)),
        "signalled" => Some(End::Signalled(rest.parse().ok()?)),
        "failed" => Some(End::Failed(rest.to_owned())),
        _ => None,
    }
}

/// Runs a command by a supervisor below this one, to which the order is passed on. When this returns, none
/// of its processes is left, even if the lower supervisor was killed.
pub async fn hold(pe: PeId) -> io::Result<()> {
    let order = order()?;
    let mut events = Events::listen()?;
    let mut lower = Command::new(PROGRAM)
        .arg0(NAME)
        .args(arguments(pe))
        .arg("--lower")
        .stdin(Stdio::piped())
        // One of the two survives a signal to a whole group.
        .process_group(0)
        .spawn()?;
    let started = Started::of(&lower);
    let mut leash = lower.stdin.take();
    if let Some(leash) = &mut leash {
        // If it has ended already, the wait below finds that.
        let _ = leash.write_all(&order);
    }
    let stood_still = tokio::select! {
        _ = events.until_ended(started, None) => false,
        () = stands_still(Some(started)) => true,
    };
    drop(leash);
    if stood_still {
        started.kill();
    }
    if !within(ENDING_OF_COMMANDS, || started.has_ended()) {
        // It was stopped, for example.
        started.kill();
    }
    let status = lower.wait()?;
    let left = end_children();
    if status.success() {
        // It has written its report.
        return Ok(());
    }
    let mut why = match stood_still {
        true => STOOD_STILL.to_owned(),
        false => ended_with(status),
    };
    if !left.is_empty() {
        why += &format!(", but for {}, which survives SIGKILL", named(&left));
    }
    report_end(&End::Failed(why))
}

/// The process that becomes the command: it sets a parent-death signal, so that it ends with the lower
/// supervisor, and is then replaced by the command, for which that setting remains. The current directory
/// and standard error are those of this process already.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The process number of the supervisor.
    pub parent: i32,
    /// Standard input; `None` for an empty one.
    pub stdin: Option<PathBuf>,
    /// The file for standard output.
    pub stdout: PathBuf,
    /// The program and its arguments.
    pub words: Vec<OsString>,
}

impl Stage {
    /// Becomes the command; if that fails, writes the reason to standard output. While that is open,
    /// the command has not started.
    pub fn enter(&self) -> io::Result<()> {
        // The command does not inherit it.
        let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let why = self.become_it();
        stdout.write_all(&why.as_bytes()[..why.len().min(COMMAND_REASON_BYTES)])
    }

    /// Becomes the command, or returns the reason why it cannot.
    fn become_it(&self) -> String {
        if let Err(error) = children::be_killed_with_parent() {
            return format!("cannot ask to be ended with the supervisor: {error}");
        }
        if children::parent() != Some(self.parent) {
            return "its supervisor is gone".to_owned();
        }
        let stdin = match &self.stdin {
            None => Stdio::null(),
            Some(path) => match File::open(path) {
                Ok(file) => file.into(),
                Err(error) => return format!("cannot read `{}`: {error}", path.display()),
            },
        };
        let stdout = match File::create(&self.stdout) {
            Ok(file) => file,
            Err(error) => return format!("cannot write `{}`: {error}", self.stdout.display()),
        };
        let [program, arguments @ ..] = &self.words[..] else {
            return "there is no command".to_owned();
        };
        let mut command = Command::new(program);
        let error = command.args(arguments).stdin(stdin).stdout(stdout).exec();
        not_started(Path::new(program), &error)
    }
}

fn not_started(program: &Path, error: &io::Error) -> String {
    let why = format!("`{}` cannot be started: {error}", program.display());
    // With a slash in it, the program is not searched in PATH.
    let is_near = program.is_relative() && program.components().count() > 1;
    match is_near && error.kind() == io::ErrorKind::NotFound {
        true => format!("{why}; it counts from the shard: give its path from the root"),
        false => why,
    }
}
