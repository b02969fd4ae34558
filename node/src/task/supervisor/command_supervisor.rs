//! The lower supervisor: it starts the command, forwards its stderr, and reports its end.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{End, Run};

use super::super::folders::Folders;
use super::super::lock::{locked, within};
use super::{Events, NAME, Over, end_children, order, parse, report_end};
use crate::limits::{DYING, GRACE_OF_COMMANDS};
use crate::system::children::{PROGRAM, Started};
use crate::system::descriptors;
use crate::system::processes::{FileId, MARK, Process, named};

/// The reason why a command cannot be run, or ended.
type Why = String;

/// A supervisor with its order.
pub struct CommandSupervisor {
    folders: Folders,
    pe: PeId,
    run: Run,
}

struct Running {
    leader: Started,
    /// The output of the stage, with the reason if the command could not start.
    stage: Option<ChildStdout>,
    copying: Copying,
}

/// The thread that forwards the command's stderr.
struct Copying {
    /// The pipe to which the command writes.
    pipe: Option<FileId>,
    /// The result when all writers have ended: whether all of the output is in the file.
    done: mpsc::Receiver<Result<(), Why>>,
}

impl CommandSupervisor {
    /// Creates a supervisor with the order on standard input. Fails if the launcher is gone, or sends an
    /// invalid order.
    pub fn for_pe(pe: PeId) -> io::Result<CommandSupervisor> {
        let run = parse(&order()?)?;
        let folders = Folders::of(&run, pe).map_err(io::Error::other)?;
        Ok(CommandSupervisor { folders, pe, run })
    }

    /// Runs the command, and reports on standard output how it ended. When this returns, none of
    /// its processes is left, or those that are left are named.
    pub async fn hold(&self) -> io::Result<()> {
        let mut events = Events::listen()?;
        let lock = match locked(&self.folders.task) {
            Ok(lock) => lock,
            Err(why) => return report_end(&End::Failed(why)),
        };
        // All processes of the command have the file open, and so hold the lock.
        descriptors::hand_down(&lock)?;
        let running = match self.start() {
            Ok(running) => running,
            Err(why) => return report_end(&End::Failed(why)),
        };
        let limit = Some(self.run.time_limit_ns).filter(|ns| *ns > 0);
        let limit = limit.map(Duration::from_nanos);
        let over = events.until_ended(running.leader, limit).await;
        let status = match over {
            Over::Ended => running.leader.reap()?,
            Over::Requested | Over::Late => None,
        };
        let left = end_all(running.leader);
        let why_ended = match (over, limit) {
            (Over::Late, Some(limit)) => format!("was killed: it ran longer than {limit:?}"),
            _ => "was told to end".to_owned(),
        };
        let end = running.end(status, &why_ended, &left);
        match over {
            Over::Ended | Over::Late => report_end(&end),
            Over::Requested => {
                // A failure means that the PE is gone.
                let _ = report_end(&end);
                Ok(())
            }
        }
    }

    /// Starts the command in a separate process group, and a thread that forwards its stderr.
    fn start(&self) -> Result<Running, Why> {
        let folders = &self.folders;
        let is_file = !folders.shard.is_dir();
        let directory = folders.directory(is_file);
        let mut stage = Command::new(PROGRAM);
        stage
            .arg0(NAME)
            .args(["stage", "--parent"])
            .arg(std::process::id().to_string())
            .arg("--stdout")
            .arg(&folders.stdout);
        if is_file {
            stage.arg("--stdin").arg(&folders.shard);
        }
        let mut child = stage
            .arg("--")
            .args(&self.run.words)
            .current_dir(&directory)
            .env("PWD", &directory)
            .env_remove("OLDPWD")
            .env("FLITCAST_PE", self.pe.0.to_string())
            .env("FLITCAST_PES", self.run.pes.to_string())
            .env("FLITCAST_SHARD", &self.run.shard)
            .env(MARK, &folders.task)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|error| format!("cannot start a process to run it: {error}"))?;
        let copying = Copying::begin(child.stderr.take(), &folders.stderr);
        Ok(Running {
            leader: Started::of(&child),
            stage: child.stdout.take(),
            copying,
        })
    }
}

impl Running {
    /// Returns how the command ended, as far as that is known, after all attempts to end it;
    /// `why_ended` if it did not end by itself.
    fn end(mut self, status: Option<End>, why_ended: &str, left: &[Process]) -> End {
        let copied = self.copying.end();
        // A remaining process may be the stage itself, whose output must not be waited for.
        let unstarted = left.is_empty().then(|| self.why_not_started()).flatten();
        if let Some(why) = unstarted {
            return End::Failed(why);
        }
        let how_ended = match &status {
            Some(End::Exited(code)) => format!("ended with exit status {code}"),
            Some(End::Signalled(signal)) => format!("was killed by signal {signal}"),
            Some(End::Failed(_)) | None => why_ended.to_owned(),
        };
        let end = status.unwrap_or_else(|| End::Failed(format!("it {why_ended}")));
        match (left, copied) {
            ([], Ok(())) => end,
            // The command has failed already, for an earlier reason.
            ([], Err(_)) if end != End::Exited(0) => end,
            ([], Err(why)) => End::Failed(format!("it {how_ended}, but {why}")),
            (left, _) => End::Failed(format!(
                "it {how_ended}, but of what it started {} survives SIGKILL",
                named(left)
            )),
        }
    }

    /// Returns the output of the stage, if that could not start the command.
    fn why_not_started(&mut self) -> Option<String> {
        let mut reason = Vec::new();
        // The stage has ended, and no other process has ever had the other end.
        self.stage.take()?.read_to_end(&mut reason).ok()?;
        (!reason.is_empty()).then(|| String::from_utf8_lossy(&reason).into_owned())
    }
}

impl Copying {
    /// Forwards the output to the PE, as long as that reads it, and into a file.
    fn begin(stderr: Option<ChildStderr>, file: &Path) -> Copying {
        let (sender, done) = mpsc::channel();
        let pipe = stderr.as_ref().and_then(FileId::of);
        let file = file.to_owned();
        thread::spawn(move || {
            let copied = stderr.map_or(Ok(()), |stderr| copy(stderr, file));
            // The receiver is gone if it took too long.
            let _ = sender.send(copied);
        });
        Copying { pipe, done }
    }

    /// Waits for the end of the output, which is when all processes that could write have ended.
    fn end(&self) -> Result<(), Why> {
        if let Ok(copied) = self.done.recv_timeout(DYING) {
            return copied;
        }
        let holders = Process::with_open(self.pipe);
        Err(match holders.is_empty() {
            true => "what it said on stderr is not yet written".to_owned(),
            false => format!("its stderr is still held by {}", named(&holders)),
        })
    }
}

fn copy(mut stderr: ChildStderr, path: PathBuf) -> Result<(), Why> {
    let shown = path.display();
    let cannot_write =
        |error| format!("what it said on stderr cannot be written: `{shown}`: {error}");
    let mut file = File::create(&path).map_err(cannot_write);
    let mut block = [0; 8192];
    let mut is_forwarded = true;
    while let Ok(length @ 1..) = stderr.read(&mut block) {
        is_forwarded = is_forwarded && io::stderr().write_all(&block[..length]).is_ok();
        // On a full disk the output still reaches the PE.
        if let Ok(open) = &mut file
            && let Err(error) = open.write_all(&block[..length])
        {
            file = Err(cannot_write(error));
        }
    }
    file.map(drop)
}

/// Ends the process group of the command, and its descendants that have left the group. Returns
/// those that are left.
fn end_all(leader: Started) -> Vec<Process> {
    if leader.has_group_left() {
        leader.end_group();
        if !within(GRACE_OF_COMMANDS, || !leader.has_group_left()) {
            leader.kill_group();
        }
    }
    // When one dies, its children become those of this process.
    end_children()
}
