//! The process that plays a PE: how it is started, and what becomes of it. What it says
//! on its channel is not heard here.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use flitcast_node::limits::Timeouts;
use flitcast_proto::PeId;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Heard, LogArgs};
use crate::console::Console;
use crate::placement::Place;
use crate::timeouts;

/// The environment variable that carries the cluster's name: unlike an argument,
/// other users cannot read it.
const CLUSTER_VARIABLE: &str = "FLITCAST_CLUSTER";

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

/// Starts what plays a PE.
pub fn play(
    command: &mut Command,
    pe: PeId,
    place: &Place,
    coordinator: SocketAddr,
    cluster: u64,
    limits: &Timeouts,
) -> io::Result<Child> {
    command
        .args(["node", "--pe", &pe.0.to_string()])
        .args(["--coordinator", &coordinator.to_string()])
        .args(["--listen", &SocketAddr::new(place.listen, 0).to_string()])
        .args(["--timeouts", &timeouts::written(limits)])
        .env(CLUSTER_VARIABLE, format!("{cluster:016x}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        // The terminal's Ctrl-C is for the coordinator; it tells the others.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// Waits for a process to end, or kills it, and passes on what it says on stderr.
pub async fn keep(
    pe: PeId,
    mut child: Child,
    heard: mpsc::Sender<(PeId, Heard)>,
    console: Console,
    json: bool,
    kill: CancellationToken,
) {
    let mut last_words = VecDeque::new();
    if let Some(stderr) = child.stderr.take() {
        let words = pass_on(pe, stderr, &console, json, &mut last_words);
        tokio::select! {
            () = words => {}
            () = kill.cancelled() => {}
        }
    }
    let status = tokio::select! {
        status = child.wait() => status,
        () = kill.cancelled() => {
            // It may have ended by itself.
            let _ = child.start_kill();
            child.wait().await
        }
    };
    if let Ok(status) = status {
        let _ = heard
            .send((pe, Heard::Exited(status, last_words.into())))
            .await;
    }
}

/// Passes on what a PE says on stderr, and keeps the last of it.
async fn pass_on(
    pe: PeId,
    stderr: ChildStderr,
    console: &Console,
    json: bool,
    last_words: &mut VecDeque<String>,
) {
    const LAST_WORDS: usize = 3;
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match json {
            true => console.line(&line),
            false => console.line(&format!("{pe}| {line}")),
        }
        last_words.push_back(line);
        if last_words.len() > LAST_WORDS {
            last_words.pop_front();
        }
    }
}
