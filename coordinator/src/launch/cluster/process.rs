//! The process of a PE on this host: its start, its stderr and its end. Its channel is handled
//! elsewhere.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use flitcast_node::limits::Timeouts;
use flitcast_proto::PeId;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::exit::Exit;
use super::member::Heard;
use crate::launch::log_args::LogArgs;
use crate::launch::ssh::lines;
use crate::observe::console::Console;
use crate::options::timeouts;
use crate::site::placement::Place;
use crate::text::stderr;
use crate::tuning::LAST_LINES;

/// Returns the command that runs `program`, behind the host's prefix if there is one.
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

/// The parameters of a PE's process.
pub struct Start<'a> {
    /// Host and addresses of the PE.
    pub place: &'a Place,
    /// Address where the coordinator listens.
    pub coordinator: SocketAddr,
    /// Folder with the PE's certificate, if it has its own.
    pub credentials: Option<&'a Path>,
    /// Admission for standard input, which authenticates the process.
    pub admission: Vec<u8>,
}

/// Returns the arguments of `flitcast` for a PE.
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

/// Starts the process of a PE.
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
        // A separate process group, so that Ctrl-C in a terminal reaches the coordinator only; the
        // coordinator stops the others.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// Writes the admission to a process, passes on its stderr, and waits until it ends or is killed.
pub async fn keep(
    pe: PeId,
    mut child: Child,
    admission: Vec<u8>,
    telling: LogForwarder,
    heard: mpsc::Sender<(PeId, Heard)>,
    kill: CancellationToken,
) {
    let mut last_words = VecDeque::new();
    if let Some(mut stdin) = child.stdin.take() {
        // The pipe holds the whole admission, even if the process does not read it; if the process
        // has already ended, `wait` below reports that.
        let _ = stdin.write_all(&admission).await;
    }
    let nobody = || mpsc::channel(1).1;
    let mut stderr = child.stderr.take().map_or_else(nobody, lines);
    let status = loop {
        tokio::select! {
            Some(line) = stderr.recv() => telling.pass_on(line, &mut last_words),
            status = child.wait() => break status,
            () = kill.cancelled() => {
                // The process may have ended by itself.
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

/// Output of the stderr of a PE's process.
pub struct LogForwarder {
    /// PE of the process.
    pub pe: PeId,
    /// Console for its lines.
    pub console: Console,
}

impl LogForwarder {
    /// Passes on the remaining lines of a process that has ended.
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
        let _ = timeout(LAST_LINES, rest).await;
    }

    /// Passes on a line and keeps it as one of the last lines.
    pub fn pass_on(&self, line: String, last_words: &mut VecDeque<String>) {
        const KEPT: usize = 3;
        self.console.line_of(self.pe, &line);
        last_words.push_back(stderr::text_of(line));
        if last_words.len() > KEPT {
            last_words.pop_front();
        }
    }
}
