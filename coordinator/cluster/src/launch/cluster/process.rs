//! The process of a PE: its start, its stderr and its end. Its channel is handled elsewhere, and
//! `ssh.rs` reaches other hosts.
//!
//! For a PE on another host, the process here is an `ssh`. Killing it is all that can be done at once:
//! the PE ends because its channel does, and its ssh ends then.
//!
//! There, the PE is a child of the script's shell, whose exit status contains the signal that
//! killed it. If ssh itself had started the PE, its exit status would be 255, as for a lost
//! connection. Killing only the `ssh` would leave the PE running. So a cluster that is cancelled
//! first closes its channels, and kills an `ssh` that still runs two seconds later.

use std::ffi::{OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use anyhow::anyhow;
use flitcast_proto::PeId;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::member::{Exit, PeEvent};
use super::plan::LaunchPlan;
use crate::launch::ssh::{Begun, Hosts, RemoteCommand, attach, lines};
use crate::observe::console::Console;
use crate::options::timeouts;
use crate::site::placement::Place;
use crate::text::phrases::keep_last;
use crate::text::stderr;
use crate::tuning::{CHANNEL_ENDS, LAST_LINES};

/// Starts `program` at a place on this host, behind the place's prefix if there is one.
fn spawn(
    program: &Path,
    place: &Place,
    logs: &[String],
    arguments: Vec<OsString>,
) -> anyhow::Result<Child> {
    let program = program.as_os_str();
    let mut words = place.run.iter().map(OsStr::new).chain([program]);
    let mut command = Command::new(words.next().unwrap_or(program));
    attach(&mut command);
    command.args(words).args(logs).args(arguments);
    command.stdout(Stdio::null()).spawn().map_err(|error| {
        let program = command.as_std().get_program().display();
        anyhow!("cannot start {program}: {error}")
    })
}

/// Starts `program` at a place, by ssh unless that is this host, with `input` on its standard input,
/// which stays open.
pub async fn begin(
    program: &Path,
    place: &Place,
    hosts: Option<&Hosts>,
    logs: &[String],
    (arguments, input): (Vec<OsString>, Vec<u8>),
) -> anyhow::Result<Begun> {
    if let Some(hosts) = hosts.filter(|_| !place.is_here) {
        let task = RemoteCommand::new(place, logs, arguments, input, true);
        return hosts.begin(&place.destination(), &task).await;
    }
    let mut child = spawn(program, place, logs, arguments)?;
    let mut stdin = child.stdin.take();
    if let Some(stdin) = &mut stdin {
        // If the process has ended already, that is noticed soon.
        let _ = stdin.write_all(&input).await;
    }
    Ok(Begun {
        stdin,
        stderr: lines(child.stderr.take()),
        child,
    })
}

/// Returns the arguments of `flitcast` for a PE of a coordinator that listens at this address.
pub fn arguments(plan: &LaunchPlan<'_>, coordinator: SocketAddr, pe: PeId) -> Vec<OsString> {
    let listen = SocketAddr::new(plan.placement.places[pe.index()].listen, 0);
    let options = [
        ("--pe", pe.0.to_string()),
        ("--coordinator", coordinator.to_string()),
        ("--listen", listen.to_string()),
        ("--timeouts", timeouts::written(plan.timeouts)),
    ];
    let mut arguments = vec![OsString::from("node")];
    for (option, value) in options {
        arguments.extend([option.into(), value.into()]);
    }
    if let Some(folder) = plan.guard.folder() {
        arguments.extend(["--credentials".into(), folder.into()]);
    }
    arguments
}

/// Passes on the stderr of a process on this host, and waits until it ends or is killed.
pub async fn keep_here(begun: Begun, mut forwarder: LogForwarder, kill: CancellationToken) {
    let Begun { child, stderr, .. } = begun;
    if let Ok(status) = ended(child, stderr, &mut forwarder, kill, false).await {
        forwarder.report_end(Exit::Here(status)).await;
    }
}

/// Starts the process of a PE on another host, passes on its stderr, and waits until it ends or its local
/// ssh is killed. From the call on, until it has started or failed, it counts as starting.
pub fn keep_there(
    hosts: Arc<Hosts>,
    destination: String,
    task: RemoteCommand,
    mut forwarder: LogForwarder,
    kill: CancellationToken,
) -> impl Future<Output = ()> {
    let beginning = hosts.beginning();
    async move {
        let begun = tokio::select! {
            begun = hosts.begin(&destination, &task) => begun,
            () = kill.cancelled() => return,
        };
        // The task contains an admission, which has been sent.
        drop((task, hosts));
        let exit = match begun {
            Err(fault) => Exit::NotBegun(fault),
            Ok(Begun { child, stderr, .. }) => {
                drop(beginning);
                match ended(child, stderr, &mut forwarder, kill, true).await {
                    Ok(status) => Exit::of_ssh(destination, status),
                    Err(_) => return,
                }
            }
        };
        forwarder.report_end(exit).await;
    }
}

/// Passes on the stderr of a process until it ends or is killed; an ssh may first end by itself.
async fn ended(
    mut child: Child,
    mut stderr: mpsc::Receiver<String>,
    forwarder: &mut LogForwarder,
    kill: CancellationToken,
    is_ssh: bool,
) -> io::Result<ExitStatus> {
    let status = loop {
        tokio::select! {
            biased;
            () = kill.cancelled() => {
                if is_ssh {
                    // The end of the channel is expected here and not reported.
                    let draining = async {
                        while stderr.recv().await.is_some() {}
                        child.wait().await
                    };
                    if let Ok(status) = timeout(CHANNEL_ENDS, draining).await {
                        break status;
                    }
                }
                // The process may have ended by itself.
                let _ = child.start_kill();
                break child.wait().await;
            }
            Some(line) = stderr.recv() => forwarder.pass_on(line),
            status = child.wait() => break status,
        }
    };
    forwarder.pass_on_rest(stderr).await;
    status
}

/// Output of the stderr of a PE's process, and the report of its end.
pub struct LogForwarder {
    pub pe: PeId,
    pub console: Console,
    /// Channel to which the end of the process is sent.
    pub event_sender: mpsc::Sender<(PeId, PeEvent)>,
    pub last_lines: Vec<String>,
}

impl LogForwarder {
    /// Passes on the remaining lines of a process that has ended.
    pub async fn pass_on_rest(&mut self, mut stderr: mpsc::Receiver<String>) {
        let rest = async {
            while let Some(line) = stderr.recv().await {
                self.pass_on(line);
            }
        };
        let _ = timeout(LAST_LINES, rest).await;
    }

    /// Passes on a line and keeps it as one of the last lines.
    pub fn pass_on(&mut self, line: String) {
        self.console.line_of(self.pe, &line);
        keep_last(&mut self.last_lines, stderr::text_of(line));
    }

    pub async fn report_end(self, exit: Exit) {
        let end = PeEvent::Exited(exit, self.last_lines);
        let _ = self.event_sender.send((self.pe, end)).await;
    }
}
