//! The lower supervisor: it starts the command, passes on what that says, and says how it
//! ended.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{End, Run};

use super::super::folders::Folders;
use super::super::lock::{locked, within};
use super::{Events, NAME, end_children, order, parse, tell};
use crate::limits::{DYING, GRACE_OF_COMMANDS};
use crate::system::children::{Ending, PROGRAM, Started};
use crate::system::descriptors;
use crate::system::processes::{FileId, MARK, Process, named};

/// Why a command cannot be run, or ended.
type Why = String;

/// A supervisor that was told what to run.
pub struct Lower {
    folders: Folders,
    pe: PeId,
    run: Run,
}

/// The command, which runs.
struct Running {
    leader: Started,
    /// Says why it could not begin.
    stage: Option<ChildStdout>,
    copying: Copying,
}

/// What passes on what the command says on stderr.
struct Copying {
    /// The pipe that it is said into.
    pipe: Option<FileId>,
    /// When nobody can say anything any more: whether all of it is in the file.
    done: mpsc::Receiver<Result<(), Why>>,
}

impl Lower {
    /// One that is told on standard input.
    ///
    /// # Errors
    ///
    /// Who started it is gone, or says nonsense.
    pub fn told(pe: PeId) -> io::Result<Lower> {
        let run = parse(&order()?)?;
        let folders = Folders::of(&run.work, pe).map_err(io::Error::other)?;
        Ok(Lower { folders, pe, run })
    }

    /// Runs the command, and says on standard output how it ended. When this returns, nothing
    /// of it is left, or what is left is named.
    ///
    /// # Errors
    ///
    /// The operating system refuses something basic.
    pub async fn hold(&self) -> io::Result<()> {
        let mut events = Events::listen()?;
        let lock = match locked(&self.folders.task) {
            Ok(lock) => lock,
            Err(why) => return tell(&End::Failed(why)),
        };
        // All of the command has it open, and so holds it.
        descriptors::hand_down(&lock)?;
        let running = match self.start() {
            Ok(running) => running,
            Err(why) => return tell(&End::Failed(why)),
        };
        let status = match events.until_ended(running.leader).await {
            true => running.leader.reap()?,
            false => None,
        };
        let left = end_all(running.leader);
        let end = running.end(status, &left);
        match status {
            Some(_) => tell(&end),
            None => {
                // The PE is gone, if nobody else has told us.
                let _ = tell(&end);
                Ok(())
            }
        }
    }

    /// Starts the command in a process group of its own, and a thread that passes on what it
    /// says on stderr.
    fn start(&self) -> Result<Running, Why> {
        let folders = &self.folders;
        let is_file = !folders.shard.is_dir();
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
            .current_dir(folders.directory(is_file))
            .env("FLITCAST_PE", self.pe.0.to_string())
            .env("FLITCAST_PES", self.run.pes.to_string())
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
    /// How it ended, as far as that is known, when all has been done to end it.
    fn end(mut self, status: Option<Ending>, left: &[Process]) -> End {
        let heard = self.copying.end();
        // Who is left may be the stage itself, of which nothing more is heard.
        let unstarted = left.is_empty().then(|| self.why_not_started()).flatten();
        let how = status.map(|status| (status.exit_status, status.signal));
        let (end, told) = match (unstarted, how) {
            (Some(why), _) => return End::Failed(why),
            (None, Some((Some(code), _))) => {
                (End::Exited(code), format!("ended with exit status {code}"))
            }
            (None, Some((_, Some(signal)))) => (
                End::Signalled(signal),
                format!("was killed by signal {signal}"),
            ),
            (None, _) => (
                End::Failed("it was told to end".to_owned()),
                "was told to end".to_owned(),
            ),
        };
        match (left, heard) {
            ([], Ok(())) => end,
            // It has failed anyway, by a cause that came before.
            ([], Err(_)) if end != End::Exited(0) => end,
            ([], Err(why)) => End::Failed(format!("it {told}, but {why}")),
            (left, _) => End::Failed(format!(
                "it {told}, but of what it started {} survives SIGKILL",
                named(left)
            )),
        }
    }

    /// What the stage has said, if that did not become the command.
    fn why_not_started(&mut self) -> Option<String> {
        let mut said = Vec::new();
        // It has ended, and nobody else has ever had the other end.
        self.stage.take()?.read_to_end(&mut said).ok()?;
        (!said.is_empty()).then(|| String::from_utf8_lossy(&said).into_owned())
    }
}

impl Copying {
    /// Passes on what is said to the PE, as long as that listens, and into a file.
    fn begin(words: Option<ChildStderr>, file: &Path) -> Copying {
        let (say, done) = mpsc::channel();
        let pipe = words.as_ref().and_then(FileId::of);
        let file = file.to_owned();
        thread::spawn(move || {
            let copied = words.map_or(Ok(()), |words| copy(words, file));
            // Nobody waits any more when it took too long.
            let _ = say.send(copied);
        });
        Copying { pipe, done }
    }

    /// Waits for the end of it, which is there when all have ended who could say something.
    fn end(&self) -> Result<(), Why> {
        if let Ok(copied) = self.done.recv_timeout(DYING) {
            return copied;
        }
        let pipe = self.pipe;
        let holds = |other: &Process| pipe.is_some_and(|pipe| other.has_open(pipe));
        let holders: Vec<Process> = Process::others().filter(holds).collect();
        Err(match holders.is_empty() {
            true => "what it said on stderr is not yet written".to_owned(),
            false => format!("its stderr is still held by {}", named(&holders)),
        })
    }
}

fn copy(mut words: ChildStderr, path: PathBuf) -> Result<(), Why> {
    let told = |error| {
        format!(
            "what it said on stderr cannot be written: `{}`: {error}",
            path.display()
        )
    };
    let mut file = File::create(&path).map_err(told);
    let mut block = [0; 8192];
    let mut listens = true;
    while let Ok(length @ 1..) = words.read(&mut block) {
        listens = listens && io::stderr().write_all(&block[..length]).is_ok();
        // On a full disk it can still be heard.
        if let Ok(open) = &mut file
            && let Err(error) = open.write_all(&block[..length])
        {
            file = Err(told(error));
        }
    }
    file.map(drop)
}

/// Ends the group of the command, and whoever of its descendants has left that; who is left
/// all the same.
fn end_all(leader: Started) -> Vec<Process> {
    if leader.has_group_left() {
        leader.end_group();
        if !within(GRACE_OF_COMMANDS, || !leader.has_group_left()) {
            leader.kill_group();
        }
    }
    // When one dies, those that it has started become ours.
    end_children()
}
