//! The daemon of a running cluster: a background process that runs a process for each PE and
//! restarts it when it ends. The daemon does not exchange messages with the PEs. It holds their
//! standard inputs, so that they end when the daemon is gone for any reason.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use clap::Args;
use flitcast_node::security::{Identity, Name, SecurityError};
use flitcast_proto::PeId;
use flitcast_proto::wire::Secret;
use flitcast_proto::wire::admission::Admission;
use tokio::io::AsyncWrite as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use flitcast_cluster::launch::cluster::{Exit, begin};
use flitcast_cluster::launch::ssh::{Begun, Hosts};
use flitcast_cluster::options::tree::{ClusterArgs, SpanningArg, TreeArgs};
use flitcast_cluster::site::guard::Guard;
use flitcast_cluster::site::placement::Place;
use flitcast_cluster::site::running_cluster::{CALL, ClusterRecord, KeptPe, Pes, claim, lock};
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::system::process;
use flitcast_cluster::text::{pe_names, stderr};

/// Pause after the first end of a PE. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Maximum pause: a host that is down for an hour causes at most 120 attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A PE that has lived this long starts with short pauses again.
const STEADY: Duration = Duration::from_secs(60);
/// Time for a PE to end after its standard input has ended; then it is killed.
const LEAVE: Duration = Duration::from_secs(3);
/// Time to read the last lines of a process that has ended; they are in a pipe already.
const LAST_LINES_WAIT: Duration = Duration::from_millis(500);
/// Maximum number of characters of the last line that are kept.
const LAST_LINE: usize = 300;

/// Arguments of `flitcast keep`, which `flitcast up` runs.
#[derive(Debug, Args)]
pub struct KeepArgs {
    /// Folder of the cluster
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Runs a cluster until a signal stops it.
pub fn keep(args: KeepArgs, logs: &[String]) -> anyhow::Result<ExitCode> {
    // Detaches from the terminal, whose signals are for `flitcast up`.
    process::leave_terminal().context("cannot leave the terminal")?;
    let folder = args.folder;
    let _lock = locked(&folder)?;
    let record = ClusterRecord::read(&folder)?;
    let topology = topology(&record)?;
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let local = tokio::task::LocalSet::new();
    let kept = local.block_on(&runtime, keep_all(&folder, record, &topology, logs));
    // Certificates and secrets are not needed any more.
    claim::remove(&folder)?;
    kept.map(|()| ExitCode::SUCCESS)
}

/// Takes the lock of a folder. A command that checks for a daemon may hold the lock for a moment.
fn locked(folder: &Path) -> anyhow::Result<File> {
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        match lock(folder)? {
            Some(lock) => return Ok(lock),
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            None => anyhow::bail!("this cluster has a keeper already"),
        }
    }
}

/// Returns the tree and the places of its PEs.
fn topology(record: &ClusterRecord) -> anyhow::Result<Topology> {
    let tree = TreeArgs::from(ClusterArgs {
        file: record.file.clone(),
        root: record.root.clone(),
        spanning: record.spanning,
    });
    let file = flitcast_cluster::site::cluster_file::load(&record.file)?;
    let trees = tree.of_cluster(&record.file, file, &[SpanningArg::Bfs]);
    let mut trees = trees.map_err(|faults| anyhow::anyhow!("{faults}"))?;
    Ok(trees.remove(0))
}

async fn keep_all(
    folder: &Path,
    record: ClusterRecord,
    topology: &Topology,
    logs: &[String],
) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen to signals")?;
    let mut calls =
        signal(SignalKind::from_raw(CALL.as_raw())).context("cannot listen to signals")?;
    let placement = topology.places();
    pe_names::set(placement.names());
    let program = std::env::current_exe().context("cannot find the flitcast binary")?;
    let pes: Vec<PeId> = topology.tree.pes().collect();
    let hosts = Hosts::of(&placement, &topology.tree, &pes, &program)?;
    let (stop, called) = (CancellationToken::new(), Rc::new(Notify::new()));
    let table = PeTable::new(folder, topology.tree.pes());
    table.write();
    let mut keepers = tokio::task::JoinSet::new();
    for pe in topology.tree.pes() {
        let keeper = PeSupervisor {
            pe,
            program: program.clone(),
            place: placement.places[pe.index()].clone(),
            hosts: hosts.clone(),
            record: record.clone(),
            logs: logs.to_vec(),
            table: table.clone(),
            called: called.clone(),
        };
        keepers.spawn_local(keeper.keep(stop.clone()));
    }
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = calls.recv() => called.notify_waiters(),
        }
    }
    stop.cancel();
    keepers.join_all().await;
    Ok(())
}

/// The state of all PEs, for other commands.
#[derive(Clone)]
struct PeTable {
    folder: PathBuf,
    pes: Rc<RefCell<Pes>>,
}

impl PeTable {
    fn new(folder: &Path, pes: impl Iterator<Item = PeId>) -> PeTable {
        let since = SystemTime::now();
        let unstarted = pes.map(|pe| KeptPe {
            pe,
            process: None,
            since,
            starts: 0,
            ends: 0,
            end: None,
        });
        PeTable {
            folder: folder.to_owned(),
            pes: Rc::new(RefCell::new(Pes {
                keeper: std::process::id(),
                pes: unstarted.collect(),
            })),
        }
    }

    fn change(&self, pe: PeId, change: impl FnOnce(&mut KeptPe)) {
        let mut pes = self.pes.borrow_mut();
        if let Some(kept) = pes.pes.iter_mut().find(|kept| kept.pe == pe) {
            kept.since = SystemTime::now();
            change(kept);
        }
        drop(pes);
        self.write();
    }

    /// Writes the state. A failure, such as a full disk, does not stop the PEs.
    fn write(&self) {
        if let Err(error) = self.pes.borrow().write(&self.folder) {
            tracing::warn!(%error, "cannot say what the PEs do");
        }
    }
}

struct PeSupervisor {
    pe: PeId,
    program: PathBuf,
    place: Place,
    /// Access to hosts over ssh, if PEs run there.
    hosts: Option<Arc<Hosts>>,
    record: ClusterRecord,
    logs: Vec<String>,
    table: PeTable,
    /// Notified when a command listens for the PEs.
    called: Rc<Notify>,
}

impl PeSupervisor {
    /// Starts the process, and restarts it until `stop`.
    async fn keep(self, stop: CancellationToken) {
        let mut pause = FIRST_PAUSE;
        while !stop.is_cancelled() {
            let began = Instant::now();
            let begun = tokio::select! {
                begun = self.begin() => begun,
                () = stop.cancelled() => return,
            };
            let end = match begun {
                Ok(alive) => {
                    self.table.change(self.pe, |kept| {
                        kept.process = alive.child.id();
                        kept.starts += 1;
                    });
                    self.wait_for_end(alive, &stop).await
                }
                Err(error) => format!("cannot be started: {error}"),
            };
            if began.elapsed() >= STEADY {
                pause = FIRST_PAUSE;
            }
            if !stop.is_cancelled() {
                tracing::warn!(pe = %self.pe, "{end}; started again in {pause:?}");
            }
            self.table.change(self.pe, |kept| {
                kept.process = None;
                kept.ends += 1;
                kept.end = Some(end);
            });
            tokio::select! {
                () = sleep(pause) => {}
                () = stop.cancelled() => {}
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
        }
    }

    async fn begin(&self) -> anyhow::Result<Begun> {
        let (admission, folder) = self.admission()?;
        let (pe, coordinator) = (self.pe.0.to_string(), self.record.coordinator.to_string());
        let mut arguments = ["node", "--pe", &pe, "--stay", "--kept"]
            .map(OsString::from)
            .to_vec();
        arguments.extend(["--join".into(), coordinator.into()]);
        if let Some(folder) = folder {
            arguments.extend(["--credentials".into(), folder.into_os_string()]);
        }
        let invocation = (arguments, admission);
        let hosts = self.hosts.as_deref();
        begin(&self.program, &self.place, hosts, &self.logs, invocation).await
    }

    /// Returns the admission of the process, and the folder with its certificate if its host has
    /// one.
    fn admission(&self) -> Result<(Vec<u8>, Option<PathBuf>), SecurityError> {
        let (mut credentials, mut folder) = (None, None);
        if let Guard::Credentials(here) = &self.record.guard {
            match here.starts_with(&self.table.folder) {
                true => credentials = Some(Identity::to_issue(here, Name::Pe(self.pe))?),
                false => folder = Some(here.clone()),
            }
        }
        let admission = Admission {
            cluster: 0,
            // Unused: each command that the PE joins sends another secret.
            secret: Secret::new([0; Secret::BYTES]),
            credentials,
        };
        Ok((admission.written(), folder))
    }

    /// Reads the stderr of a process, waits for its end, and describes the end.
    async fn wait_for_end(&self, alive: Begun, stop: &CancellationToken) -> String {
        let Begun {
            mut child,
            mut stdin,
            mut stderr,
        } = alive;
        let mut last = String::new();
        let ended = loop {
            tokio::select! {
                Some(line) = stderr.recv() => self.pass_on(line, &mut last),
                () = self.called.notified() => if let Some(stdin) = &mut stdin {
                    // If the pipe is full, it already contains enough notifications.
                    let mut context = Context::from_waker(Waker::noop());
                    let _ = std::pin::Pin::new(stdin).poll_write(&mut context, b"\n");
                },
                ended = child.wait() => break ended,
                () = stop.cancelled() => {
                    // The PE ends when its standard input does.
                    drop(stdin);
                    match timeout(LEAVE, child.wait()).await {
                        Ok(ended) => break ended,
                        Err(_) => {
                            let _ = child.start_kill();
                            break child.wait().await;
                        }
                    }
                }
            }
        };
        let rest = async {
            while let Some(line) = stderr.recv().await {
                self.pass_on(line, &mut last);
            }
        };
        let _ = timeout(LAST_LINES_WAIT, rest).await;
        let how = match ended {
            Err(error) => error.to_string(),
            Ok(status) if self.hosts.is_none() => Exit::Here(status).to_string(),
            Ok(status) => Exit::of_ssh(self.place.destination(), status).to_string(),
        };
        match last.is_empty() {
            true => how,
            false => format!("{how}, having said: {last}"),
        }
    }

    /// Writes a line to the log and keeps it as the last line.
    fn pass_on(&self, line: String, last: &mut String) {
        stderr::line_of(self.pe, &line);
        *last = line.chars().take(LAST_LINE).collect();
    }
}
