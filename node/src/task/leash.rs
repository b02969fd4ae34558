//! The supervisor that stands between a PE and the command that it runs, so that nothing of
//! the command outlives the PE, however that ends.
//!
//! It is a process of its own (`flitcast leash`). The PE holds the other end of its standard
//! input, and that end is closed whatever becomes of the PE. What it says on its standard
//! output is one line: how the command ended. It adopts whom the command leaves behind, and
//! ends these, too.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::thread;
use std::time::Instant;

use flitcast_proto::wire::control::End;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, kill_process_group,
    set_child_subreaper, waitid,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::limits::{DYING, GRACE_OF_COMMANDS, LOCK, POLL};

/// What is run, and with what.
#[derive(Clone, Debug)]
pub struct Leash {
    /// The command's current directory.
    pub directory: PathBuf,
    /// Its standard input; `None`: empty.
    pub stdin: Option<PathBuf>,
    /// Where its standard output goes.
    pub stdout: PathBuf,
    /// Where its standard error goes, beside ours.
    pub stderr: PathBuf,
    /// Held as long as anything of the command may live: no other one works on the same
    /// shard until then.
    pub lock: PathBuf,
    /// The program and its arguments.
    pub words: Vec<OsString>,
}

/// What a supervisor is told by its surroundings.
enum Event {
    /// The PE is gone, or wants the command to end.
    Told,
    /// The command's own process has ended.
    Ended,
}

impl Leash {
    /// Runs the command, and says on standard output how it ended. When this returns, nothing
    /// of it is left.
    ///
    /// # Errors
    ///
    /// The operating system refuses something basic.
    pub async fn hold(&self) -> io::Result<()> {
        let (say, mut events) = mpsc::channel(1);
        for kind in [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ] {
            let (mut signal, say) = (signal(kind)?, say.clone());
            tokio::spawn(async move {
                signal.recv().await;
                let _ = say.send(Event::Told).await;
            });
        }
        let told = say.clone();
        thread::spawn(move || {
            let mut ignored = [0; 64];
            while matches!(io::stdin().read(&mut ignored), Ok(1..)) {}
            let _ = told.blocking_send(Event::Told);
        });
        set_child_subreaper(Some(getpid()))?;
        let _lock = match locked(&self.lock) {
            Ok(lock) => lock,
            Err(why) => return tell(&End::Failed(why)),
        };
        let (leader, copying) = match self.start() {
            Ok(started) => started,
            Err(why) => return tell(&End::Failed(why)),
        };
        thread::spawn(move || {
            // It stays to be waited for: until then its number is nobody else's.
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(leader), ended), Err(Errno::INTR)) {}
            let _ = say.blocking_send(Event::Ended);
        });
        let end = match events.recv().await {
            Some(Event::Ended) => waitid(WaitId::Pid(leader), WaitIdOptions::EXITED)?,
            Some(Event::Told) | None => None,
        };
        end_all(leader);
        // All who could have written to it are gone.
        let _ = copying.join();
        match end.map(|status| (status.exit_status(), status.terminating_signal())) {
            Some((Some(code), _)) => tell(&End::Exited(code)),
            Some((_, Some(signal))) => tell(&End::Signalled(signal)),
            _ => {
                // The PE is gone, if nobody else has told us.
                let _ = tell(&End::Failed("it was told to end".to_owned()));
                Ok(())
            }
        }
    }

    /// Starts the command in a process group of its own, and a thread that passes on what it
    /// says on stderr.
    fn start(&self) -> Result<(Pid, thread::JoinHandle<()>), String> {
        let told = |what: &str, path: &PathBuf, error: io::Error| {
            format!("cannot {what} `{}`: {error}", path.display())
        };
        let stdin = match &self.stdin {
            None => Stdio::null(),
            Some(path) => File::open(path)
                .map_err(|error| told("read", path, error))?
                .into(),
        };
        let create = |path| File::create(path).map_err(|error| told("write", path, error));
        let (stdout, stderr) = (create(&self.stdout)?, create(&self.stderr)?);
        let [program, arguments @ ..] = &self.words[..] else {
            return Err("there is no command".to_owned());
        };
        let child = Command::new(program)
            .args(arguments)
            .current_dir(&self.directory)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn();
        let mut child = child.map_err(|error| not_started(Path::new(program), &error))?;
        let words = child.stderr.take();
        Ok((
            Pid::from_child(&child),
            thread::spawn(move || words.map_or((), |words| copy(words, stderr))),
        ))
    }
}

fn not_started(program: &Path, error: &io::Error) -> String {
    let why = format!("`{}` cannot be started: {error}", program.display());
    // With a slash in it, it is no name to be looked up in PATH.
    let is_near = program.is_relative() && program.components().count() > 1;
    match is_near && error.kind() == io::ErrorKind::NotFound {
        true => format!("{why}; it counts from the shard: give its path from the root"),
        false => why,
    }
}

/// Passes on what the command says on stderr to the PE, as long as that listens, and into a
/// file.
fn copy(mut words: ChildStderr, mut file: File) {
    let mut block = [0; 8192];
    let mut listens = true;
    while let Ok(length @ 1..) = words.read(&mut block) {
        listens = listens && io::stderr().write_all(&block[..length]).is_ok();
        // On a full disk it can still be heard.
        let _ = file.write_all(&block[..length]);
    }
}

/// Takes a lock, when whoever holds it has ended.
pub fn locked(path: &PathBuf) -> Result<File, String> {
    let lock = File::create(path);
    let lock = lock.map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    let deadline = Instant::now() + LOCK;
    while let Err(error) = flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        if error != Errno::WOULDBLOCK || Instant::now() > deadline {
            let path = path.display();
            return Err(format!("an earlier command still holds `{path}`: {error}"));
        }
        thread::sleep(POLL);
    }
    Ok(lock)
}

/// Ends the group of the command, and whoever of its descendants has left that.
fn end_all(group: Pid) {
    if in_group(group) {
        let _ = kill_process_group(group, Signal::TERM);
        if !within(GRACE_OF_COMMANDS, || !in_group(group)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
    // When one dies, those that it has started become ours.
    within(DYING, || {
        let is_left = is_left(|| WaitId::All);
        for child in children().into_iter().filter(|_| is_left) {
            let _ = kill_process(child, Signal::KILL);
        }
        !is_left
    });
}

fn in_group(group: Pid) -> bool {
    is_left(|| WaitId::Pgid(Some(group)))
}

/// Whether any of these is left; takes notice of those that have ended.
fn is_left(id: impl Fn() -> WaitId<'static>) -> bool {
    loop {
        match waitid(id(), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Waits until something holds; whether it does in time.
fn within(limit: std::time::Duration, holds: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    while !holds() {
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(POLL);
    }
    true
}

/// The processes whose parent this one is; none where the system does not tell.
fn children() -> Vec<Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = tasks.flatten().map(|task| task.path().join("children"));
    let lists: Vec<String> = lists.flat_map(std::fs::read_to_string).collect();
    let words = lists.iter().flat_map(|list| list.split_whitespace());
    words
        .filter_map(|word| Pid::from_raw(word.parse().ok()?))
        .collect()
}

fn tell(end: &End) -> io::Result<()> {
    let mut out = io::stdout();
    match end {
        End::Exited(code) => write!(out, "exited {code}"),
        End::Signalled(signal) => write!(out, "signalled {signal}"),
        End::Failed(why) => write!(out, "failed {why}"),
    }?;
    out.flush()
}

/// Reads what a supervisor has told.
pub fn told(said: &str) -> Option<End> {
    let (how, rest) = said.split_once(' ')?;
    match how {
        "exited" => Some(End::Exited(rest.parse().ok()?)),
        "signalled" => Some(End::Signalled(rest.parse().ok()?)),
        "failed" => Some(End::Failed(rest.to_owned())),
        _ => None,
    }
}
