//! `flitcast up`: starts the daemon of a cluster and waits until all PEs are present; and `flitcast down`: stops it.

use std::fs::{self, OpenOptions};
use std::future::pending;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use flitcast_proto::PeId;

use super::status;
use crate::render::exit::{FAILED, error_chain, refused};
use flitcast_cluster::job::request::{guard_fault, local_topology};
use flitcast_cluster::launch::cluster::Exit;
use flitcast_cluster::options::transfer::GuardArgs;
use flitcast_cluster::options::tree::{ClusterArgs, SpanningArg, TreeArgs};
use flitcast_cluster::site::ca;
use flitcast_cluster::site::guard::Guard;
use flitcast_cluster::site::placement::Starter;
use flitcast_cluster::site::running_cluster::claim::{self, Claim, Claimed, claim};
use flitcast_cluster::site::running_cluster::{
    CREDENTIALS, ClusterRecord, KeptPe, Pes, RunningCluster, digest, find, folder_of, is_kept,
};
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::system::interrupts::Interrupts;
use flitcast_cluster::system::process::{Process, Signal, drawn, started_at};
use flitcast_cluster::text::phrases::{at, counted};
use flitcast_cluster::text::printable::printable;
use flitcast_cluster::text::stderr;
use flitcast_cluster::text::stdout::{self, print};

/// Ports below the ephemeral ports: a PE that repeatedly connects to such a port on the same host
/// would eventually be connected to itself.
const PORTS: std::ops::Range<u16> = 17_000..32_000;
/// Time for the daemon to start: it reads a file and takes a lock.
const BEGIN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(10);
/// Time for all PEs to be present: the program may have to be copied to many hosts first. A PE that
/// cannot be started at all is noticed sooner.
const BEGINNING: Duration = Duration::from_secs(600);
/// Number of failed starts after which a PE is assumed to be impossible to start.
const TRIES: u32 = 3;
/// Validity in days of the certificates; a cluster that runs longer has to be restarted.
const DAYS: u32 = 365;

const EXAMPLES: &str = "\
Examples:
  flitcast up cluster.toml
  flitcast scatter --cluster cluster.toml --input shards --output out
  flitcast status cluster.toml
  flitcast down cluster.toml

Exit status: 0 when all PEs are there, also if the cluster was up before; 1 if
it does not come up, and then nothing is left of it; 2 if the file is wrong.";

/// Arguments of `flitcast up`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct UpArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    guard: GuardArgs,
}

/// A valid request to start a cluster.
struct Wanted {
    args: UpArgs,
    topology: Topology,
    guard: Guard,
}

pub fn up(args: UpArgs, logs: &[String]) -> anyhow::Result<ExitCode> {
    // If the file is missing, reading it reports that.
    let file = std::path::absolute(&args.cluster.file)?;
    let file = file.canonicalize().unwrap_or(file);
    let claimed = folder_of(&file).and_then(claim);
    let claim = match claimed.map_err(|fault| refused([fault]))? {
        Claimed::Here(claim) => claim,
        Claimed::Up(kept) => {
            print(format!("{} is up already\n", printable(&kept.record.name)).as_bytes())?;
            status::print_processes(&kept, &mut stdout::lock())?;
            return Ok(ExitCode::SUCCESS);
        }
        Claimed::Elsewhere { process } => {
            let file = args.cluster.file.display();
            bail!(
                "{file}: this cluster is being brought up by another `flitcast up`, process {process}; \
                 wait until that has ended"
            );
        }
    };
    bring_up(check_args(args)?, file, claim, logs)
}

/// Checks the command line, and that others do not start the PEs.
fn check_args(args: UpArgs) -> anyhow::Result<Wanted> {
    let tree = TreeArgs::from(args.cluster.clone());
    let topology = local_topology(&tree, SpanningArg::Bfs).map_err(refused)?;
    let placement = topology.places();
    let file = args.cluster.file.display();
    let fault = match placement.starter() {
        _ if !placement.is_joined() => None,
        None => Some(format!(
            "{file}: others start the PEs of this cluster ([launch] kind = \"join\"): \
             start them with `flitcast node --join .. --stay`, and they are up"
        )),
        Some(starter) => Some(format!(
            "{file}: [launch] kind = \"{}\" has the PEs of this cluster started for each command{}",
            starter.name(),
            match starter {
                Starter::Compose(_) =>
                    "; with `docker compose up` they stay up, and commands find and leave them so",
                Starter::Slurm(_) => "",
            }
        )),
    };
    if let Some(fault) = fault {
        return Err(refused([fault]));
    }
    let guard = Guard::choose(&args.guard.or(&topology.settings), &placement);
    if let Err(fault) = guard.check(&placement) {
        let fault = guard_fault(&args.guard, &tree, &topology.settings, fault);
        return Err(refused([fault]));
    }
    Ok(Wanted {
        args,
        topology,
        guard,
    })
}

fn bring_up(
    wanted: Wanted,
    file: PathBuf,
    claim: Claim,
    logs: &[String],
) -> anyhow::Result<ExitCode> {
    let folder = claim.folder().to_owned();
    let record = prepare(&wanted, file, &folder)?;
    let log = folder.join("log");
    let mut keeper = start(&folder, &log, logs)?;
    let kept = RunningCluster {
        folder: folder.clone(),
        record,
    };
    let ready = begun(&mut keeper, &folder).and_then(|()| {
        let conducting = flitcast_cluster::launch::runtime::conducting()?;
        conducting.block_on(wait_for_all_pes(&kept, wanted.topology, logs))
    });
    let code = match ready {
        Ok(None) => {
            claim.leave_to_keeper();
            let out = &mut stdout::lock();
            let pes = counted(kept.record.pes as u64, "PE", "PEs");
            writeln!(out, "{} is up, {pes}", printable(&kept.record.name))?;
            status::print_processes(&kept, out)?;
            return Ok(ExitCode::SUCCESS);
        }
        Ok(Some(code)) => code,
        Err(error) => {
            let message = error_chain(&error);
            stderr::error(format_args!("{}: {message}", kept.record.name));
            ExitCode::from(FAILED)
        }
    };
    for line in ends(&folder) {
        stderr::note(format_args!("  {line}"));
    }
    stop(&mut keeper);
    Ok(code)
}

/// Fixes all settings of the cluster before anything runs.
fn prepare(wanted: &Wanted, file: PathBuf, folder: &Path) -> anyhow::Result<ClusterRecord> {
    let topology = &wanted.topology;
    let pes = topology.tree.len();
    let guard = match &wanted.guard {
        // On loopback as well, any user could listen at the address to which the PEs connect.
        Guard::Secret | Guard::MadeForTheRun => {
            let made = folder.join(CREDENTIALS);
            ca::make(&made, pes as u32, DAYS)?;
            Guard::Credentials(made)
        }
        Guard::Credentials(folder) => Guard::Credentials(folder.canonicalize()?),
        Guard::Insecure => Guard::Insecure,
    };
    let spanning = wanted.args.cluster.spanning.unwrap_or(SpanningArg::Bfs);
    let record = ClusterRecord {
        name: topology.name.clone(),
        digest: digest(&file)?,
        file,
        root: wanted.args.cluster.root.clone(),
        spanning: topology.nodes.as_ref().map(|_| spanning),
        pes,
        coordinator: free_address(topology.places().coordinator)?,
        guard,
        since: SystemTime::now(),
    };
    record.write(folder)?;
    Ok(record)
}

/// Finds a free port for commands to listen on.
fn free_address(address: IpAddr) -> anyhow::Result<SocketAddr> {
    let first = u16::from_ne_bytes(drawn()?) % PORTS.len() as u16;
    let ports = (0..PORTS.len() as u16).map(|n| PORTS.start + (first + n) % PORTS.len() as u16);
    for port in ports {
        let at = SocketAddr::new(address, port);
        match TcpListener::bind(at) {
            Ok(_) => return Ok(at),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            Err(error) => {
                Err(error).with_context(|| format!("cannot listen on {address} for the PEs"))?
            }
        }
    }
    let first = PORTS.start;
    bail!("cannot listen on {address}: no port from {first} is free")
}

fn start(folder: &Path, log: &Path, logs: &[String]) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("cannot find the flitcast binary")?;
    let mut options = OpenOptions::new();
    let options = options.create(true).append(true).mode(0o600);
    let log = options.open(log).map_err(at(log))?;
    let mut command = Command::new(program);
    command.args(logs).arg("keep").arg(folder).stderr(log);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    // The daemon's signals: Ctrl-C in this shell reaches this process only, which stops the daemon.
    command.arg0("flitcast");
    command.spawn().context("cannot start the keeper")
}

fn begun(keeper: &mut Child, folder: &Path) -> anyhow::Result<()> {
    let deadline = Instant::now() + BEGIN;
    loop {
        if let Some(status) = keeper.try_wait()? {
            let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
            let last = log.lines().last().unwrap_or_default();
            anyhow::bail!("the keeper {}: {last}", Exit::Here(status));
        }
        if is_kept(folder)? && Pes::read(folder)?.is_some() {
            return Ok(());
        }
        anyhow::ensure!(Instant::now() < deadline, "the keeper does not begin");
        std::thread::sleep(LOOK);
    }
}

/// Waits until all PEs are present, and releases them. Returns an exit status otherwise.
async fn wait_for_all_pes(
    kept: &RunningCluster,
    topology: Topology,
    logs: &[String],
) -> anyhow::Result<Option<ExitCode>> {
    let mut interrupts = Interrupts::new()?;
    let _used = kept.take("flitcast up")?;
    let mut placement = topology.places();
    kept.adopt(&mut placement, BEGINNING);
    tokio::select! {
        cluster = status::joined(kept, &topology, &placement, logs, true) => {
            cluster?.stop(false, pending()).await;
            Ok(None)
        }
        pe = failing_pe(&kept.folder) => anyhow::bail!("{pe} does not stay"),
        interruption = interrupts.next() => {
            stderr::note("interrupted: every process was stopped");
            Ok(Some(interruption.exit_code()))
        }
    }
}

/// Waits until a PE has failed to start too often.
async fn failing_pe(folder: &Path) -> PeId {
    loop {
        tokio::time::sleep(10 * LOOK).await;
        let pes = pes_in(folder);
        if let Some(kept) = pes.iter().find(|kept| kept.ends >= TRIES) {
            return kept.pe;
        }
    }
}

fn pes_in(folder: &Path) -> Vec<KeptPe> {
    let pes = Pes::read(folder).ok().flatten();
    pes.map(|pes| pes.pes).unwrap_or_default()
}

/// Returns the failures of the PEs that do not run.
fn ends(folder: &Path) -> Vec<String> {
    let end = |kept: KeptPe| Some(format!("{} {}", kept.pe, kept.end?));
    pes_in(folder).into_iter().filter_map(end).collect()
}

/// Stops the daemon and waits for its end.
fn stop(keeper: &mut Child) {
    let process = Process::numbered(keeper.id());
    let is_over = end(process, || Ok(!matches!(keeper.try_wait(), Ok(None))));
    if is_over.is_ok_and(|is_over| !is_over) {
        // A process that SIGKILL does not end hangs in the kernel, at its disk for example.
        tracing::warn!(pid = keeper.id(), "the keeper cannot be killed");
    }
}

/// Time for the daemon to stop all PEs, which have 3 s, and to remove the folder.
const STOP: Duration = Duration::from_secs(8);

const DOWN_HELP: &str = "\
A command that is using the cluster fails.

Exit status: 0 when it is down, 2 if it was not up.";

/// Arguments of `flitcast down`.
#[derive(Debug, Args)]
#[command(after_help = DOWN_HELP)]
pub struct DownArgs {
    /// Cluster file (TOML); it may be missing if the cluster is still up
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Stops a cluster and waits until nothing of it is left.
pub fn down(args: &DownArgs) -> anyhow::Result<ExitCode> {
    let shown = args.file.display();
    let found = find(&args.file).map_err(|fault| refused([fault]))?;
    let kept = found.ok_or_else(|| refused([format!("{shown}: this cluster is not up")]))?;
    let pes = Pes::read(&kept.folder)?.context("its keeper has not begun yet")?;
    let keeper = pes.keeper;
    let process = Process::numbered(keeper).context("its keeper has no process")?;
    let began = started_at(keeper);
    // The lock is free a moment before the process ends, and another process may get its number then.
    let has_ended = || started_at(keeper).is_none_or(|at| Some(at) != began);
    let is_over = || Ok(!is_kept(&kept.folder)? && has_ended());
    let is_over = end(Some(process), is_over)?;
    ensure!(is_over, "process {keeper}, its keeper, does not end");
    // Another command may have started the cluster again.
    claim::remove_forsaken(&kept.folder)?;
    print(format!("{} is down\n", printable(&kept.record.name)).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Signals the daemon to end; kills it if it does not end, which ends the PEs as well. Returns whether it
/// is over.
fn end(
    process: Option<Process>,
    mut is_over: impl FnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<bool> {
    for signal in [Signal::TERM, Signal::KILL] {
        process.inspect(|process| process.signal(signal));
        let deadline = Instant::now() + STOP;
        while Instant::now() < deadline {
            if is_over()? {
                return Ok(true);
            }
            std::thread::sleep(LOOK);
        }
    }
    Ok(false)
}
