//! Runs a command on a PE's shard, forwards its output, and collects its result.
//!
//! Below the working folder, which all PEs of a host may share, P3 has `in/p3`, its shard, `out/p3`,
//! its result, and `tasks/p3` for all other files. If shards have names, these are folders with an entry
//! for each shard, and the result is in the folder of the PE that ran the command. A result exists
//! completely or not at all. `supervisor` keeps the command from outliving the PE, `lock` lets one at a
//! time work on a shard, and `listing` distinguishes new entries from earlier ones.

mod folders;
mod lines;
mod listing;
mod lock;
mod places;
pub mod supervisor;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{End, FromPe, PlaceResults, Ran, Run, ToPe};
use flitcast_proto::wire::{MAX_JOBS, MAX_LAST_LINES};
use thiserror::Error;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::config::NodeConfig;
use crate::coordinator::Coordinator;
use crate::error::NodeError;
use crate::limits::{COMMAND_END_BYTES, DYING, ENDING_OF_COMMANDS, QUEUED_MESSAGES};
use crate::payload::{self, PayloadError};
use crate::system::children::{PROGRAM, Started};
use crate::system::lock::{Lock, try_lock};
use folders::{Collected, Folders};
use lines::Lines;

pub use crate::payload::{KEPT_WORK_PREFIX, WORK_PREFIX};
pub use folders::failed_name;
pub use places::place_results;

/// A reason why a command was not run, or its result cannot be sent.
#[derive(Debug, Error)]
enum TaskError {
    #[error("what it wrote cannot be sent: {0}")]
    Payload(#[from] PayloadError),
    #[error("{}", supervisor::STOOD_STILL)]
    StoodStill,
    #[error("{0}")]
    Other(String),
}

impl TaskError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TaskError {
        move |error| TaskError::Other(format!("cannot {doing} `{}`: {error}", path.display()))
    }
}

fn remove(path: &Path) -> Result<(), TaskError> {
    payload::remove(path).map_err(TaskError::io("remove", path))
}

/// Runs a function that may wait for the disk.
async fn with_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, TaskError> + Send + 'static,
) -> Result<T, TaskError> {
    let done = spawn_blocking(work).await;
    done.map_err(|error| TaskError::Other(error.to_string()))?
}

/// Runs a command, and further ones that the coordinator sends meanwhile, unless this PE does not run
/// any. Reports the end of each to the coordinator, and returns when none is left: whether the PE is
/// to continue. A message to stop ends all commands, and so does the end of the channel; another one ends
/// the command on one shard.
pub(crate) async fn run(
    config: &NodeConfig,
    channel: &mut Coordinator,
    run: Run,
) -> Result<bool, NodeError> {
    let stop = CancellationToken::new();
    let mut stops: BTreeMap<OsString, CancellationToken> = BTreeMap::new();
    let (line_sender, mut lines) = mpsc::channel(QUEUED_MESSAGES);
    let begin = |run: Run, stops: &mut BTreeMap<_, _>| {
        let stop = stop.child_token();
        stops.insert(run.shard.clone(), stop.clone());
        let task = Task {
            pe: config.pe,
            run,
            took: Duration::ZERO,
            last_lines: VecDeque::new(),
            line_sender: line_sender.clone(),
            stop,
        };
        task.ran(config.allowed.commands.clone())
    };
    let mut running = JoinSet::new();
    running.spawn(begin(run, &mut stops));
    while !running.is_empty() {
        tokio::select! {
            biased;
            Some(line) = lines.recv() => channel.send_reply(line).await?,
            Some(ran) = running.join_next() => {
                // All lines of a command come before its end.
                while let Ok(line) = lines.try_recv() {
                    channel.send_reply(line).await?;
                }
                // A panic of the command's task is one here.
                let ran = ran.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
                stops.remove(&ran.shard);
                channel.send_reply(FromPe::Ran(ran)).await?;
            }
            command = channel.next_command() => match command {
                Ok(ToPe::Run(run)) if running.len() < MAX_JOBS => {
                    running.spawn(begin(run, &mut stops));
                }
                Ok(ToPe::EndRun { shard }) => {
                    stops.get(&shard).inspect(|stop| stop.cancel());
                }
                command => {
                    stop.cancel();
                    // The output of a command that is being ended is not forwarded.
                    drop(lines);
                    while running.join_next().await.is_some() {}
                    return match command? {
                        ToPe::Stop { .. } | ToPe::Abort { .. } => Ok(false),
                        other => Err(NodeError::unexpected(&other, "while a command ran")),
                    };
                }
            }
        }
    }
    Ok(true)
}

/// Runs a function that may wait for the disk, unless the coordinator may not have commands run.
async fn if_allowed<T: Send + 'static>(
    config: &NodeConfig,
    function: impl FnOnce() -> Result<T, TaskError> + Send + 'static,
) -> Result<T, TaskError> {
    let allowed = config.allowed.commands.clone();
    allowed.map_err(TaskError::Other)?;
    with_disk(function).await
}

/// Removes this PE's part of a working folder, and reports to the coordinator.
pub(crate) async fn clear(
    config: &NodeConfig,
    channel: &mut Coordinator,
    work: PathBuf,
    gathered: PathBuf,
) -> Result<(), NodeError> {
    let pe = config.pe;
    let clear = move || {
        if !gathered.as_os_str().is_empty() {
            remove(folders::checked(&gathered)?)?;
        }
        folders::clear(&work, pe)
    };
    let cleared = if_allowed(config, clear).await;
    let left = cleared.err().map(|why| why.to_string());
    let left = left.unwrap_or_default();
    channel.send_reply(FromPe::Cleared { left }).await
}

/// Reports the shards in an input to the coordinator.
pub(crate) async fn list(
    config: &NodeConfig,
    channel: &mut Coordinator,
    input: PathBuf,
    output: PathBuf,
) -> Result<(), NodeError> {
    let listed = if_allowed(config, move || Ok(places::list_shards(&input, &output))).await;
    let failed = |why: TaskError| FromPe::ShardsListed {
        names: Vec::new(),
        sizes: Vec::new(),
        results: Vec::new(),
        fault: why.to_string(),
    };
    channel.send_reply(listed.unwrap_or_else(failed)).await
}

/// Moves gathered results to the output, and reports to the coordinator.
pub(crate) async fn place(
    config: &NodeConfig,
    channel: &mut Coordinator,
    results: PlaceResults,
) -> Result<(), NodeError> {
    let count = results.from.len();
    let placed = if_allowed(config, move || Ok(place_results(&results))).await;
    let faults = placed.unwrap_or_else(|why| vec![why.to_string(); count]);
    channel.send_reply(FromPe::ResultsPlaced { faults }).await
}

/// The mark of a working folder whose run is alive: a locked file in it.
#[derive(Debug)]
pub struct WorkLock {
    /// `None` where the file system has no locks.
    _file: Option<File>,
}

/// The name of that file.
const LOCK_FILE: &str = "lock";

impl WorkLock {
    /// Marks a working folder. The file appears with its lock or not at all.
    pub fn take(work: &Path) -> io::Result<WorkLock> {
        let unlocked = work.join("lock.unfinished");
        let file = File::create(&unlocked)?;
        if let Err(error) = try_lock(&file, Lock::Exclusive) {
            tracing::debug!(%error, "the working folder cannot be locked");
            std::fs::remove_file(&unlocked)?;
            return Ok(WorkLock { _file: None });
        }
        std::fs::rename(&unlocked, work.join(LOCK_FILE))?;
        Ok(WorkLock { _file: Some(file) })
    }
}

/// Removes the working folders beside one, on this host, whose runs were killed. A folder that was to
/// be kept stays, and so does one that cannot be removed.
pub fn clear_dead(work: &Path) {
    let beside = work.parent().map(std::fs::read_dir);
    for entry in beside.into_iter().flatten().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let bytes = name.as_encoded_bytes();
        let is_kept = bytes.starts_with(KEPT_WORK_PREFIX.as_bytes());
        if is_kept || payload::HiddenName::parse(&name) != Some(payload::HiddenName::Work) {
            continue;
        }
        let Some(_lock) = payload::unlocked(&path.join(LOCK_FILE)) else {
            continue;
        };
        if let Err(error) = clear_away(&path) {
            let path = path.display();
            tracing::warn!(%path, %error, "the working folder of a run that was killed cannot be removed");
        }
    }
}

/// Removes a working folder in which nothing but the mark of its run is left.
pub fn remove_if_empty(work: &Path) {
    let Ok(mut left) = std::fs::read_dir(work) else {
        return;
    };
    if left.all(|entry| entry.is_ok_and(|entry| entry.file_name() == LOCK_FILE)) {
        // If one of these fails, the next run beside it removes the folder.
        let _ = std::fs::remove_file(work.join(LOCK_FILE));
        let _ = std::fs::remove_dir(work);
    }
}

/// Removes a working folder with the parts of all PEs, after all processes in it have ended: the
/// command of a PE that died may be ending just now.
pub fn clear_away(work: &Path) -> io::Result<()> {
    lock::ended_all(work).map_err(io::Error::other)?;
    payload::remove(work)
}

struct Task {
    pe: PeId,
    run: Run,
    took: Duration,
    last_lines: VecDeque<String>,
    line_sender: mpsc::Sender<FromPe>,
    stop: CancellationToken,
}

impl Task {
    /// Runs the command, unless this PE does not run any, for the given reason. Returns the report.
    async fn ran(mut self, commands: Result<(), String>) -> Ran {
        let end = match commands {
            Ok(()) => self.attempt().await,
            Err(why) => Err(TaskError::Other(why)),
        };
        let (end, collected) = match end {
            Ok(ended) => ended,
            Err(why) => (End::Failed(why.to_string()), Collected::default()),
        };
        Ran {
            end,
            took_ns: self.took.as_nanos() as u64,
            wrote_bytes: if collected.is_output {
                0
            } else {
                collected.bytes
            },
            last_lines: self.last_lines.into(),
            not_taken: collected.not_taken,
            kept_output: collected.is_output,
            shard: self.run.shard,
        }
    }

    /// Runs the command, and collects its result if it succeeded, else its output.
    async fn attempt(&mut self) -> Result<(End, Collected), TaskError> {
        let folders = Folders::of(&self.run, self.pe)?;
        let ready = {
            let folders = folders.clone();
            with_disk(move || folders.prepare()).await?
        };
        let began = Instant::now();
        let end = self.play().await;
        self.took = began.elapsed();
        if matches!(end, Err(TaskError::StoodStill)) {
            // The lower supervisor may be ending the command just now.
            let _ = unsupervised(folders.clone(), None).await;
        }
        let (end, supervisor) = end?;
        let end = match (end, supervisor) {
            (Some(end @ (End::Exited(_) | End::Signalled(_))), _) => end,
            (Some(end), Some(status)) if status.success() => end,
            (_, status) => return Err(unsupervised(folders, status).await),
        };
        if end == End::Exited(0) {
            let collecting = folders.clone();
            match with_disk(move || collecting.collect(&ready)).await {
                Ok(collected) => return Ok((end, collected)),
                Err(why) => return self.failed(folders, End::Failed(why.to_string())).await,
            }
        }
        self.failed(folders, end).await
    }

    /// Keeps the output of a command that failed.
    async fn failed(&mut self, folders: Folders, end: End) -> Result<(End, Collected), TaskError> {
        let ran = !matches!(end, End::Failed(_));
        if self.last_lines.is_empty() {
            let stdout = folders.stdout.clone();
            self.last_lines = with_disk(move || Ok(lines::last_of(&stdout))).await?;
        }
        let collected = with_disk(move || folders.collect_output(ran)).await?;
        Ok((end, collected))
    }

    /// Lets supervisors run the command, and forwards its stderr. Returns how it ended, if they
    /// reported it, and how the upper one ended.
    async fn play(&mut self) -> Result<(Option<End>, Option<ExitStatus>), TaskError> {
        let mut child = self.start().map_err(|error| {
            TaskError::Other(format!("cannot start a process to run it: {error}"))
        })?;
        let mut stdin = child.stdin.take();
        let order = supervisor::put(&self.run);
        let upper = child.id().and_then(Started::numbered);
        let mut stood_still = false;
        let ended = {
            let stop = self.stop.clone();
            let listening = async {
                if let Some(stdin) = &mut stdin {
                    // A supervisor that has ended reports nothing.
                    let _ = stdin.write_all(&order).await;
                }
                self.listen(&mut child).await
            };
            tokio::select! {
                end = listening => Some(end),
                () = stop.cancelled() => None,
                () = supervisor::stands_still(upper) => {
                    stood_still = true;
                    None
                }
            }
        };
        if stood_still {
            let _ = child.start_kill();
        }
        // Tells them to end, if they have not.
        drop(stdin);
        drop((child.stdout.take(), child.stderr.take()));
        // The upper one gives the lower one that long, and then ends all remaining processes.
        let limit = ENDING_OF_COMMANDS + 2 * DYING;
        let mut supervisor = timeout(limit, child.wait()).await;
        if supervisor.is_err() {
            // It was stopped, for example; the lower one ends everything.
            let _ = child.start_kill();
            supervisor = timeout(DYING, child.wait()).await;
        }
        match ended {
            Some(Ok(report)) => {
                let status = supervisor.ok().and_then(Result::ok);
                Ok((supervisor::parse_end(&report), status))
            }
            Some(Err(error)) => {
                let why = format!("nobody knows how it ended: {error}");
                Err(TaskError::Other(why))
            }
            None if stood_still => Err(TaskError::StoodStill),
            None => Err(TaskError::Other("it was cancelled".to_owned())),
        }
    }

    /// Returns the supervisors' report when they and the command have ended.
    async fn listen(&mut self, child: &mut Child) -> io::Result<String> {
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let ended = CancellationToken::new();
        let reading_report = async {
            let mut report = Vec::new();
            if let Some(out) = out {
                let mut out = BufReader::new(out.take(COMMAND_END_BYTES));
                out.read_until(b'\n', &mut report).await?;
            }
            ended.cancel();
            io::Result::Ok(String::from_utf8_lossy(&report).into_owned())
        };
        let forwarding_stderr = async {
            let mut lines = Lines::default();
            let Some(mut err) = err else { return Ok(()) };
            let mut block = [0; 8192];
            // All output from before the end is there already.
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
                    // The receiver may be gone.
                    let _ = self.line_sender.send(self.line(line)).await;
                }
                if length == 0 {
                    return Ok(());
                }
            }
        };
        let (report, ()) = tokio::try_join!(reading_report, forwarding_stderr)?;
        Ok(report)
    }

    fn line(&self, text: String) -> FromPe {
        FromPe::Line {
            text,
            shard: self.run.shard.clone(),
        }
    }

    fn start(&self) -> io::Result<Child> {
        Command::new(PROGRAM)
            .arg0(supervisor::NAME)
            .args(supervisor::arguments(self.pe))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A terminal's Ctrl-C is for the PE, or for its launcher.
            .process_group(0)
            .spawn()
    }
}

/// Ends the remaining processes of a command without supervisors, and returns the error for the report.
async fn unsupervised(folders: Folders, supervisor: Option<ExitStatus>) -> TaskError {
    let ended = with_disk(move || lock::locked(&folders.task).map_err(TaskError::Other)).await;
    match (ended, supervisor) {
        (Err(why), _) => why,
        (Ok(_lock), Some(status)) => TaskError::Other(supervisor::ended_with(status)),
        (Ok(_lock), None) => TaskError::Other("nobody knows how it ended".to_owned()),
    }
}
