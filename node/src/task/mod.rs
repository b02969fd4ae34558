//! A PE runs a command on its shard: where it lies, what the command says while it runs, and
//! where what it wrote is put.
//!
//! Below the working folder, which all PEs of a host may share, P3 has `in/p3`, its shard,
//! `out/p3`, what is to be gathered, and `tasks/p3` for what is neither. `out/p3` is there
//! whole or not at all. How the command is kept from outliving the PE is `leash`'s business, that
//! one at a time works on a shard, `lock`'s, how what it wrote is told from what stood there
//! before, `listing`'s.

mod folders;
pub mod leash;
mod lines;
mod listing;
mod lock;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::wire::MAX_LAST_LINES;
use flitcast_proto::wire::control::{End, FromPe, Ran, Run, ToPe};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::NodeConfig;
use crate::coordinator::Coordinator;
use crate::error::NodeError;
use crate::limits::{DYING, ENDING_OF_COMMANDS, WORDS};
use crate::payload::{self, PayloadError};
use crate::system::children::PROGRAM;
use folders::Folders;
use lines::Lines;

pub use crate::payload::WORK_PREFIX;

/// Of what supervisors say of a command's end, in bytes: a cause with a path or two.
const LONGEST_END: u64 = 64 * 1024;

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
    let commands = config.allowed.commands.clone();
    let mut attempt = std::pin::pin!(async move {
        let end = match commands {
            Ok(()) => task.attempt().await,
            Err(why) => Err(TaskError::Told(why)),
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
                        said: crate::text::clipped(&other),
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
    let cleared = match &config.allowed.commands {
        Ok(()) => with_disk(move || Folders::of(&work, pe)?.clear()).await,
        Err(why) => Err(TaskError::Told(why.clone())),
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
    lock::ended_all(work).map_err(io::Error::other)?;
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
        let end = self.play().await;
        self.took = began.elapsed();
        let (end, supervisor) = end?;
        let end = match (end, supervisor) {
            (Some(end @ (End::Exited(_) | End::Signalled(_))), _) => end,
            (Some(end), Some(status)) if status.success() => end,
            (_, status) => return Err(unsupervised(folders, status).await),
        };
        if end != End::Exited(0) {
            return Ok((end, 0));
        }
        let bytes = with_disk(move || folders.collect(&ready)).await?;
        Ok((end, bytes))
    }

    /// Has supervisors run the command, and passes on what it says on stderr; how it ended, if
    /// they could tell, and how the upper one did.
    async fn play(&mut self) -> Result<(Option<End>, Option<ExitStatus>), TaskError> {
        let mut child = self.start().map_err(|error| {
            TaskError::Told(format!("cannot start a process to run it: {error}"))
        })?;
        let mut stdin = child.stdin.take();
        let order = leash::put(&self.run);
        let ended = {
            let stop = self.stop.clone();
            let listening = async {
                if let Some(stdin) = &mut stdin {
                    // Who has ended already says nothing.
                    let _ = stdin.write_all(&order).await;
                }
                self.listen(&mut child).await
            };
            tokio::select! {
                end = listening => Some(end),
                () = stop.cancelled() => None,
            }
        };
        // Tells them to end, if they have not.
        drop(stdin);
        drop((child.stdout.take(), child.stderr.take()));
        // The upper one gives the lower one that long, and then ends what that has left.
        let limit = ENDING_OF_COMMANDS + 2 * DYING;
        let mut supervisor = timeout(limit, child.wait()).await;
        if supervisor.is_err() {
            // It was stopped, say; the lower one ends it all.
            let _ = child.start_kill();
            supervisor = timeout(DYING, child.wait()).await;
        }
        match ended {
            Some(Ok(said)) => Ok((leash::told(&said), supervisor.ok().and_then(Result::ok))),
            Some(Err(error)) => Err(TaskError::Told(format!(
                "nobody knows how it ended: {error}"
            ))),
            None => Err(TaskError::Told("it was given up".to_owned())),
        }
    }

    /// What the supervisors say of the end, when they and the command have ended.
    async fn listen(&mut self, child: &mut Child) -> io::Result<String> {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let ended = CancellationToken::new();
        let telling = async {
            let mut said = Vec::new();
            if let Some(out) = out {
                let mut out = BufReader::new(out.take(LONGEST_END));
                out.read_until(b'\n', &mut said).await?;
            }
            ended.cancel();
            io::Result::Ok(String::from_utf8_lossy(&said).into_owned())
        };
        let hearing = async {
            let mut lines = Lines::default();
            let Some(mut err) = err else { return Ok(()) };
            let mut block = [0; 8192];
            // What was said before the end is there already.
            let late = async {
                ended.cancelled().await;
                sleep(ENDING_OF_COMMANDS).await;
            };
            let mut late = std::pin::pin!(late);
            loop {
                let length = tokio::select! {
                    length = err.read(&mut block) => length?,
                    () = &mut late => 0,
                };
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

    fn start(&self) -> io::Result<Child> {
        Command::new(PROGRAM)
            .arg0(leash::NAME)
            .args(leash::arguments(self.pe))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A terminal's Ctrl-C is for the PE, or for who started it.
            .process_group(0)
            .spawn()
    }
}

/// Ends what is left of a command that nobody watches over any more, and says so.
async fn unsupervised(folders: Folders, supervisor: Option<ExitStatus>) -> TaskError {
    let ended = with_disk(move || lock::locked(&folders.task).map_err(TaskError::Told)).await;
    match (ended, supervisor) {
        (Err(why), _) => why,
        (Ok(_lock), Some(status)) => TaskError::Told(leash::ended_with(status)),
        (Ok(_lock), None) => TaskError::Told("nobody knows how it ended".to_owned()),
    }
}
