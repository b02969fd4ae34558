//! The process that plays a PE: how it is started, and what becomes of it. What it says
//! on its channel is not heard here.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use flitcast_node::limits::Timeouts;
use flitcast_proto::PeId;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Heard;
use super::exit::Exit;
use crate::launch::log_args::LogArgs;
use crate::launch::ssh::lines;
use crate::observe::console::Console;
use crate::options::timeouts;
use crate::site::placement::Place;

/// `program`, run as the place asks.
pub fn command(program: &Path, place: &Place, logs: &LogArgs) -> Command {
    let mut command = match &place.run[..] {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    };
    command.args(&logs.args);
    command
}

/// What the process that plays a PE is told.
pub struct Start<'a> {
    /// Where it runs.
    pub place: &'a Place,
    /// Where the coordinator listens.
    pub coordinator: SocketAddr,
    /// The folder with its certificate, if it has one of its own.
    pub credentials: Option<&'a Path>,
    /// What makes it one of the cluster.
    pub admission: Vec<u8>,
}

/// What `flitcast` is told as arguments, to play a PE.
pub fn arguments(pe: PeId, start: &Start<'_>, limits: &Timeouts) -> Vec<OsString> {
    let listen = SocketAddr::new(start.place.listen, 0);
    let told = [
        ("--pe", pe.0.to_string()),
        ("--coordinator", start.coordinator.to_string()),
        ("--listen", listen.to_string()),
        ("--timeouts", timeouts::written(limits)),
    ];
    let mut arguments = vec![OsString::from("node")];
    for (option, value) in told {
        arguments.extend([option.into(), value.into()]);
    }
    if let Some(folder) = start.credentials {
        arguments.extend(["--credentials".into(), folder.into()]);
    }
    arguments
}

/// Starts what plays a PE.
pub fn play(
    command: &mut Command,
    pe: PeId,
    start: &Start<'_>,
    limits: &Timeouts,
) -> io::Result<Child> {
    command
        .args(arguments(pe, start, limits))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // The terminal's Ctrl-C is for the coordinator; it tells the others.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// Tells a process what makes it one of the cluster, waits for it to end, or kills it, and
/// passes on what it says on stderr.
pub async fn keep(
    pe: PeId,
    mut child: Child,
    admission: Vec<u8>,
    telling: Telling,
    heard: mpsc::Sender<(PeId, Heard)>,
    kill: CancellationToken,
) {
    let mut last_words = VecDeque::new();
    if let Some(mut stdin) = child.stdin.take() {
        // A pipe holds it all, whether it is read or not; who has ended already is heard
        // of below.
        let _ = stdin.write_all(&admission).await;
    }
    let nobody = || mpsc::channel(1).1;
    let mut stderr = child.stderr.take().map_or_else(nobody, lines);
    let status = loop {
        tokio::select! {
            Some(line) = stderr.recv() => telling.pass_on(line, &mut last_words),
            status = child.wait() => break status,
            () = kill.cancelled() => {
                // It may have ended by itself.
                let _ = child.start_kill();
                break child.wait().await;
            }
        }
    };
    telling.pass_on_rest(stderr, &mut last_words).await;
    if let Ok(status) = status {
        let _ = heard
            .send((pe, Heard::Exited(Exit::Here(status), last_words.into())))
            .await;
    }
}

/// For the last words of a process that has ended: they are in a pipe already, at most 64 KiB, but
/// whomever it has left behind may hold that for long.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// Where what a PE says is told.
pub struct Telling {
    /// Who says it.
    pub pe: PeId,
    /// Where to.
    pub console: Console,
    /// Whether its lines are JSON, and so say who it is themselves.
    pub json: bool,
}

impl Telling {
    /// Passes on what a process that has ended has said and nobody has heard.
    pub async fn pass_on_rest(
        &self,
        mut stderr: mpsc::Receiver<String>,
        last_words: &mut VecDeque<String>,
    ) {
        let rest = async {
            while let Some(line) = stderr.recv().await {
                self.pass_on(line, last_words);
            }
        };
        let _ = timeout(LAST_WORDS, rest).await;
    }

    /// Passes on a line, and keeps it among the last ones.
    pub fn pass_on(&self, line: String, last_words: &mut VecDeque<String>) {
        const KEPT: usize = 3;
        match self.json {
            true => self.console.line(&line),
            false => self.console.line(&format!("{}| {line}", self.pe)),
        }
        last_words.push_back(line);
        if last_words.len() > KEPT {
            last_words.pop_front();
        }
    }
}
