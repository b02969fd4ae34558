//! A PE runs a command on its shard: where it lies, what the command says while it runs, and
//! where what it wrote is put.
//!
//! Below the working folder, which all PEs of a host may share, P3 has `in/p3`, its shard,
//! `out/p3`, what is to be gathered, and `tasks/p3` for what is neither. `out/p3` is there
//! whole or not at all. How the command is kept from outliving the PE is `leash`'s business,
//! how what it wrote is told from what stood there before, `listing`'s.

mod folders;
pub mod leash;
mod lines;
mod listing;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::wire::MAX_LAST_LINES;
use flitcast_proto::wire::control::{End, FromPe, Ran, Run, ToPe};
use thiserror::Error;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::coordinator::Coordinator;
use crate::limits::{DYING, GRACE_OF_COMMANDS, WORDS};
use crate::payload::{self, PayloadError};
use crate::session::{NodeConfig, NodeError};
use folders::Folders;
use lines::Lines;

/// How the name of a working folder begins. A PE touches no other.
pub const WORK_PREFIX: &str = ".flitcast-map-";

/// Whether a PE runs what the coordinator says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commands {
    /// It does.
    Run,
    /// It does not, for this reason.
    Refuse(String),
}

/// Why a command was not run, or what it wrote cannot be sent.
#[derive(Debug, Error)]
enum TaskError {
    #[error("cannot {doing} `{}`: {source}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("`{}` is no working folder of `flitcast map`", .0.display())]
    NotOurs(PathBuf),
    #[error("there is no shard at `{}`", .0.display())]
    NoShard(PathBuf),
    #[error(
        "it wrote a file of its own called `{0}`, where what it says on {0} is to be put: have it take another name"
    )]
    Taken(&'static str),
    #[error("what it wrote cannot be sent: {0}")]
    Payload(#[from] PayloadError),
    /// As the supervisor, or the PE itself, says it.
    #[error("{0}")]
    Told(String),
}

impl TaskError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TaskError {
        let path = path.to_owned();
        move |source| TaskError::Io {
            doing,
            path,
            source,
        }
    }
}

fn remove(path: &Path) -> Result<(), TaskError> {
    payload::remove(path).map_err(TaskError::io("remove", path))
}

/// Does something that may wait for the disk.
async fn with_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TaskError> + Send + 'static,
) -> Result<T, TaskError> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| TaskError::Told(error.to_string()))?
}

/// Runs a command, unless this PE does not, and tells the coordinator how it ended; whether
/// the PE is to go on. A word to stop ends the command, and so does the end of the channel.
///
/// # Errors
///
/// The coordinator is gone, or says what has no place now.
pub(crate) async fn run(
    config: &NodeConfig,
    channel: &mut Coordinator,
    run: Run,
) -> Result<bool, NodeError> {
    let stop = CancellationToken::new();
    let (say, mut lines) = mpsc::channel(WORDS);
    let mut task = Task {
        pe: config.pe,
        run,
        took: Duration::ZERO,
        last_lines: VecDeque::new(),
        say,
        stop: stop.clone(),
    };
    let commands = config.commands.clone();
    let mut attempt = std::pin::pin!(async move {
        let end = match commands {
            Commands::Run => task.attempt().await,
            Commands::Refuse(why) => Err(TaskError::Told(why)),
        };
        let (end, wrote_bytes) = end.unwrap_or_else(|why| (End::Failed(why.to_string()), 0));
        Ran {
            end,
            took_ns: task.took.as_nanos() as u64,
            wrote_bytes,
            last_lines: task.last_lines.into(),
        }
    });
    let ran = loop {
        tokio::select! {
            biased;
            Some(line) = lines.recv() => channel.say(FromPe::Line(line)).await?,
            ran = &mut attempt => break ran,
            word = channel.next_word() => {
                stop.cancel();
                // Nobody listens any more to what it says while it ends.
                drop(lines);
                attempt.await;
                return match word? {
                    ToPe::Stop { .. } | ToPe::Abort { .. } => Ok(false),
                    other => Err(NodeError::Unexpected {
                        said: crate::clipped(&other),
                        when: "while a command ran",
                    }),
                };
            }
        }
    };
    while let Some(line) = lines.recv().await {
        channel.say(FromPe::Line(line)).await?;
    }
    channel.say(FromPe::Ran(ran)).await?;
    Ok(true)
}

/// Removes this PE's part of a working folder, and tells the coordinator.
///
/// # Errors
///
/// The coordinator is gone.
pub(crate) async fn clear(
    config: &NodeConfig,
    channel: &mut Coordinator,
    work: PathBuf,
) -> Result<(), NodeError> {
    let pe = config.pe;
    let cleared = match &config.commands {
        Commands::Run => with_disk(move || Folders::of(&work, pe)?.clear()).await,
        Commands::Refuse(why) => Err(TaskError::Told(why.clone())),
    };
    let left = cleared.err().map(|why| why.to_string());
    let left = left.unwrap_or_default();
    channel.say(FromPe::Cleared { left }).await
}

/// Removes a working folder with the parts of all PEs, when nothing works in it any more:
/// what a PE was running that died may be ending just now.
///
/// # Errors
///
/// Something still runs in it, or it cannot be removed.
pub fn clear_away(work: &Path) -> io::Result<()> {
    let tasks = std::fs::read_dir(work.join("tasks"));
    for task in tasks.into_iter().flatten().flatten() {
        let lock = task.path().join("lock");
        if lock.exists() {
            leash::locked(&lock).map_err(io::Error::other)?;
        }
    }
    payload::remove(work)
}

/// One run of a command.
struct Task {
    pe: PeId,
    run: Run,
    took: Duration,
    last_lines: VecDeque<String>,
    say: mpsc::Sender<String>,
    stop: CancellationToken,
}

impl Task {
    /// Runs the command; how it ended, and how many bytes it wrote.
    async fn attempt(&mut self) -> Result<(End, u64), TaskError> {
        let folders = Folders::of(&self.run.work, self.pe)?;
        let ready = {
            let folders = folders.clone();
            with_disk(move || folders.prepare()).await?
        };
        let began = Instant::now();
        let end = self.play(&folders, ready.is_file).await;
        self.took = began.elapsed();
        let end = end?;
        if end != End::Exited(0) {
            return Ok((end, 0));
        }
        let bytes = with_disk(move || folders.collect(&ready)).await?;
        Ok((end, bytes))
    }

    /// Has a supervisor run the command, and passes on what it says on stderr.
    async fn play(&mut self, folders: &Folders, is_file: bool) -> Result<End, TaskError> {
        let mut child = self.start(folders, is_file).map_err(|error| {
            TaskError::Told(format!("cannot start a process to run it: {error}"))
        })?;
        let stdin = child.stdin.take();
        let ended = {
            let stop = self.stop.clone();
            let listening = self.listen(&mut child);
            tokio::select! {
                end = listening => Some(end),
                () = stop.cancelled() => None,
            }
        };
        // Tells it to end, if it has not.
        drop(stdin);
        drop((child.stdout.take(), child.stderr.take()));
        let _ = timeout(GRACE_OF_COMMANDS + 2 * DYING, child.wait()).await;
        match ended {
            Some(Ok(said)) => leash::told(&said)
                .ok_or_else(|| TaskError::Told(format!("nobody knows how it ended: `{said}`"))),
            Some(Err(error)) => Err(TaskError::Told(format!(
                "nobody knows how it ended: {error}"
            ))),
            None => Err(TaskError::Told("it was given up".to_owned())),
        }
    }

    /// All that the supervisor says, until it and the command have ended.
    async fn listen(&mut self, child: &mut Child) -> io::Result<String> {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let telling = async {
            let mut said = Vec::new();
            if let Some(mut out) = out {
                out.read_to_end(&mut said).await?;
            }
            io::Result::Ok(String::from_utf8_lossy(&said).into_owned())
        };
        let hearing = async {
            let mut lines = Lines::default();
            let Some(mut err) = err else { return Ok(()) };
            let mut block = [0; 8192];
            loop {
                let length = err.read(&mut block).await?;
                let complete = match length {
                    0 => lines.rest(),
                    _ => lines.cut(&block[..length]),
                };
                for line in complete {
                    if self.last_lines.len() == MAX_LAST_LINES {
                        self.last_lines.pop_front();
                    }
                    self.last_lines.push_back(line.clone());
                    // Nobody may listen any more.
                    let _ = self.say.send(line).await;
                }
                if length == 0 {
                    return Ok(());
                }
            }
        };
        let (said, ()) = tokio::try_join!(telling, hearing)?;
        Ok(said)
    }

    fn start(&self, folders: &Folders, is_file: bool) -> io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("leash")
            .arg("--directory")
            .arg(folders.directory(is_file));
        if is_file {
            command.arg("--stdin").arg(&folders.shard);
        }
        command
            .arg("--stdout")
            .arg(&folders.stdout)
            .arg("--stderr")
            .arg(&folders.stderr)
            .arg("--lock")
            .arg(&folders.lock)
            .arg("--")
            .args(&self.run.words)
            .env("FLITCAST_PE", self.pe.0.to_string())
            .env("FLITCAST_PES", self.run.pes.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A terminal's Ctrl-C is for the PE, or for who started it.
            .process_group(0)
            .spawn()
    }
}
