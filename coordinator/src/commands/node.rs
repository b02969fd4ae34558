//! `flitcast node`: one PE in its own process, started by a coordinator or joining one; and `flitcast
//! health`. The node crate implements the PE.

use std::io::{self, IsTerminal as _, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use flitcast_node::handshake_limiter::listen;
use flitcast_node::health::{self, Activity};
use flitcast_node::join::{Credentials, JoinConfig, join};
use flitcast_node::limits::{self, Timeouts};
use flitcast_node::permissions::{FileAccess, Permissions};
use flitcast_node::runtime::run_alone;
use flitcast_node::security::{Identity, Name, Security, SecurityError};
use flitcast_node::system::children;
use flitcast_node::system::lent::LentFolder;
use flitcast_node::{NodeConfig, Tally};
use flitcast_proto::PeId;
use flitcast_proto::wire::admission::Admission;
use flitcast_proto::wire::{LENGTH_BYTES, MAX_ADMISSION, frame_length};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::render::exit::refused;
use flitcast_cluster::launch::ssh;
use flitcast_cluster::observe::metrics::Metrics;
use flitcast_cluster::options::timeouts;
use flitcast_cluster::site::slurm::{self, Slurm};
use flitcast_cluster::site::topology::of_option;
use flitcast_cluster::system::interrupts::{HANGUP_AND_QUIT, SIGCONT, if_not_ignored};
use flitcast_cluster::text::faults::Faults;
use flitcast_cluster::text::printable::printable;
use flitcast_cluster::text::stdout::print;
use flitcast_cluster::text::units::parse_time;

/// Default of `--wait`: enough for a user to type the other command.
const WAIT: Duration = Duration::from_secs(60);

const UNGUARDED: &str = "who joins must show who it is: --credentials DIR (`flitcast ca init` makes \
    one), or else --insecure";

pub fn play(args: NodeArgs) -> anyhow::Result<ExitCode> {
    let config = args.join.clone().map(|at| join_config(&args, at));
    let config = config.transpose().map_err(refused)?;
    let metrics = Metrics::listen(args.metrics).map_err(|fault| refused([fault]))?;
    match config {
        Some(config) => joined(config, args, metrics),
        None => started(args, metrics),
    }
}

pub fn health(args: &HealthArgs) -> anyhow::Result<ExitCode> {
    let healthy = printable(health::check(&args.file)?);
    print(format!("{healthy}\n").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

pub fn self_hash() -> anyhow::Result<ExitCode> {
    let hash = ssh::own_hash().context("cannot read this program")?;
    print(format!("{hash}\n").as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

pub fn self_serve(listen: IpAddr) -> anyhow::Result<ExitCode> {
    let unwanted = CancellationToken::new();
    leashed(unwanted.clone(), Arc::default());
    run_alone(async {
        tokio::select! {
            served = ssh::serve(listen) => served.context("cannot hand this program out"),
            () = unwanted.cancelled() => Ok(()),
        }
    })
    .context("cannot start the runtime")??;
    Ok(ExitCode::SUCCESS)
}

/// Returns a token that these signals cancel. The signal of a parent's death cancels it only after a
/// delay in which the end of the channel can be handled first.
fn cancelled_by(
    signals: impl IntoIterator<Item = SignalKind>,
) -> std::io::Result<CancellationToken> {
    let shutdown = CancellationToken::new();
    let parent = children::parent();
    for kind in signals {
        let mut signal = signal(kind)?;
        let cancel = shutdown.clone();
        tokio::spawn(async move {
            signal.recv().await;
            if children::parent() != parent {
                tokio::time::sleep(limits::ORPHANED).await;
            }
            cancel.cancel();
        });
    }
    Ok(shutdown)
}

/// Cancels the token some time after the parent has died. Its control channel ends then as well, and
/// that is to end the PE, but may be noticed after the signal. `parent` is the process that started
/// this one.
fn cancel_for_orphan(shutdown: &CancellationToken, parent: Option<i32>) -> std::io::Result<()> {
    let mut hung_up = signal(SignalKind::hangup())?;
    let mut continued = signal(SignalKind::from_raw(SIGCONT))?;
    let cancel = shutdown.clone();
    tokio::spawn(async move {
        // A user may stop and continue a PE.
        let orphaned = async {
            while children::parent() == parent {
                continued.recv().await;
            }
        };
        tokio::select! {
            // The system sends it to stopped orphans.
            _ = hung_up.recv() => {}
            () = orphaned => {}
        }
        tokio::time::sleep(limits::ORPHANED).await;
        cancel.cancel();
    });
    Ok(())
}

/// Reads the credentials of this process, which its launcher writes to standard input.
fn admitted() -> anyhow::Result<Admission> {
    let mut frame = Vec::new();
    let input = io::stdin().lock();
    anyhow::ensure!(
        !input.is_terminal(),
        "`flitcast node` is started by the other commands, or joins one with --join HOST:PORT"
    );
    input
        .take(MAX_ADMISSION as u64 + 1)
        .read_to_end(&mut frame)
        .context("cannot read standard input")?;
    Admission::parse(&frame).context("standard input does not admit this process to a cluster")
}

/// Reads the credentials of a PE under a daemon, whose standard input stays open.
fn admitted_and_kept() -> anyhow::Result<Admission> {
    let mut frame = vec![0; LENGTH_BYTES];
    let mut input = io::stdin().lock();
    let reading = "cannot read standard input";
    input.read_exact(&mut frame).context(reading)?;
    let (prefix, _) = frame.split_first_chunk().context(reading)?;
    let length = frame_length(*prefix, MAX_ADMISSION)?;
    frame.resize(LENGTH_BYTES + length, 0);
    let body = &mut frame[LENGTH_BYTES..];
    input.read_exact(body).context(reading)?;
    Admission::parse(&frame).context("standard input does not admit this process to a cluster")
}

/// Cancels the token when standard input ends: the daemon has ended, or ends this process. Each
/// byte before that reports a coordinator that this process may join.
fn leashed(shutdown: CancellationToken, called: Arc<Notify>) {
    // On a separate thread: a read of standard input cannot be cancelled.
    std::thread::spawn(move || {
        for _ in io::stdin().lock().bytes().map_while(Result::ok) {
            called.notify_one();
        }
        shutdown.cancel();
    });
}

fn started(args: NodeArgs, metrics: Option<Metrics>) -> anyhow::Result<ExitCode> {
    // If the coordinator dies, even by SIGKILL, the channel ends. The signal continues a stopped PE,
    // so that it notices that, and ends a PE whose channel does not end.
    let parent = children::parent();
    children::continue_when_parent_ends().context("prctl")?;
    let pe = PeId(args.pe.context("--pe is missing")?);
    let coordinator = args.coordinator.context("--coordinator is missing")?;
    let admission = admitted()?;
    let identity = match (&args.credentials, &admission.credentials) {
        (Some(folder), _) => Some(Identity::load(folder, Name::Pe(pe))?),
        (None, Some(issued)) => Some(Identity::issued(issued, Name::Pe(pe))?),
        (None, None) => None,
    };
    let security = identity.map_or(Security::Plain, Security::Tls);
    run_alone(async {
        let shutdown = cancelled_by([SignalKind::terminate()])?;
        cancel_for_orphan(&shutdown, parent)?;
        let address = args.listen.unwrap_or(([127, 0, 0, 1], 0).into());
        let listener = listen(address);
        let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
        let config = NodeConfig {
            pe,
            coordinator,
            cluster: admission.cluster,
            secret: admission.secret,
            allowed: Permissions::started(pe, &security, coordinator),
            security,
            timeouts: args.timeouts.unwrap_or_default(),
            tally: Tally::default(),
        };
        if let Some(metrics) = metrics {
            metrics.serve_pe_metrics(pe, config.tally.clone());
        }
        anyhow::Ok(flitcast_node::run(config, listener, shutdown).await?)
    })
    .context("cannot start the runtime")??;
    Ok(ExitCode::SUCCESS)
}

/// Checks the command line completely before any connection is made.
fn join_config(args: &NodeArgs, at: String) -> Result<JoinConfig, Faults> {
    let mut faults = Faults::default();
    let for_anybody = |option: &str, do_what: &str| {
        anyhow!(
            "{option}: with --insecure, anybody who listens at {at} could {do_what} here: \
             give --credentials DIR (`flitcast ca init` makes one) instead of --insecure"
        )
    };
    if args.commands && args.insecure {
        faults.add(for_anybody("--commands", "run commands"));
    }
    if !args.files.is_empty() && args.insecure {
        faults.add(for_anybody("--files", "read and write files"));
    }
    let mut folders = Vec::new();
    for path in &args.files {
        match LentFolder::open(path) {
            Ok(folder) => folders.push(folder),
            Err(why) => {
                let path = path.display();
                faults.add(anyhow!("--files {path}: {why}; name a folder that exists"));
            }
        }
    }
    let place = faults.take(place(args.pe, &args.pes, at));
    let wait = args.wait.as_deref().map(parse_time).transpose();
    let wait = faults.take(wait.map_err(of_option("--wait")));
    let shown = match &place {
        Some((pe, _)) => faults.take(shown(args, *pe)),
        None => {
            let is_guarded = args.credentials.is_some() || args.insecure || args.kept;
            faults.0.extend((!is_guarded).then(|| anyhow!(UNGUARDED)));
            None
        }
    };
    match (place, wait, shown) {
        (Some((pe, coordinator)), Some(wait), Some(credentials)) if faults.0.is_empty() => {
            Ok(JoinConfig {
                pe,
                coordinator,
                listen: args.listen,
                credentials,
                wait: wait.map_or(WAIT, Duration::from_nanos),
                stays: args.stay,
                called: Arc::default(),
                // The PE's daemon may let it run anything that the daemon could run itself.
                commands: args.commands || args.kept,
                files: match args.kept {
                    true => FileAccess::All,
                    false => FileAccess::Below(folders.into()),
                },
                tally: Tally::default(),
            })
        }
        _ => Err(faults),
    }
}

/// Returns the credentials that the joining PE shows.
fn shown(args: &NodeArgs, pe: PeId) -> anyhow::Result<Credentials> {
    let invalid = |fault: SecurityError| anyhow!("--credentials: {fault}");
    let admission = match args.kept {
        true => Some(admitted_and_kept().map_err(|error| anyhow!("{error:#}"))?),
        false => None,
    };
    let issued = admission.as_ref().and_then(|it| it.credentials.as_ref());
    let credentials = match (&args.credentials, issued) {
        (Some(folder), _) => Credentials::Folder(folder.clone()),
        (None, Some(issued)) => {
            Credentials::Issued(Identity::issued(issued, Name::Pe(pe)).map_err(invalid)?)
        }
        // The daemon permits it.
        (None, None) if args.insecure || args.kept => Credentials::None,
        (None, None) => bail!(UNGUARDED),
    };
    // Invalid credentials are reported before any connection is made.
    credentials.security(pe).map_err(invalid)?;
    Ok(credentials)
}

/// Returns the PE to run, and the address to join.
fn place(pe: Option<u32>, pes: &[u32], at: String) -> Result<(PeId, String), Faults> {
    let mut faults = Faults::default();
    if let Some(slurm) = Slurm::asked(&at) {
        let why =
            "not allowed with --join slurm, which reads the number from SLURM_PROCID; remove it";
        faults.0.extend(pe.map(|pe| anyhow!("--pe {pe}: {why}")));
        return match slurm.task(slurm::environment, pes) {
            Ok((pe, address)) if faults.0.is_empty() => Ok((pe, address.to_string())),
            task => {
                let more = task.err().into_iter().flatten();
                let more = more.map(|fault| anyhow!("--join slurm: {fault}"));
                faults.0.extend(more);
                Err(faults)
            }
        };
    }
    let port = at.rsplit_once(':').map(|(host, port)| (host, port.parse()));
    let is_place = matches!(port, Some((host, Ok(1u16..))) if !host.is_empty());
    if let (Some(pe), true) = (pe, is_place) {
        return Ok((PeId(pe), at));
    }
    if pe.is_none() {
        faults.add(anyhow!("--pe: missing; give the number of the PE, --pe I"));
    }
    if !is_place {
        let at: String = at.chars().take(80).collect();
        let forms =
            "write HOST:PORT, as in the cluster file's coordinator, or slurm inside a job of Slurm";
        faults.add(anyhow!("--join {at}: {forms}"));
    }
    Err(faults)
}

fn joined(
    config: JoinConfig,
    args: NodeArgs,
    metrics: Option<Metrics>,
) -> anyhow::Result<ExitCode> {
    run_alone(async {
        let both = [SignalKind::terminate(), SignalKind::interrupt()];
        let signals = both.into_iter().chain(if_not_ignored(HANGUP_AND_QUIT));
        let shutdown = cancelled_by(signals)?;
        if args.kept {
            leashed(shutdown.clone(), config.called.clone());
        }
        if let Some(metrics) = metrics {
            metrics.serve_pe_metrics(config.pe, config.tally.clone());
        }
        let state = Activity::default();
        let health_updates = async {
            match args.health {
                Some(path) => {
                    let shown = path.display().to_string();
                    let written = health::tell(path, state.clone()).await;
                    written.with_context(|| format!("cannot write --health {shown}"))
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            joined = join(config, state.clone(), shutdown) => Ok(joined?),
            ended = health_updates => ended,
        }
    })
    .context("cannot start the runtime")??;
    Ok(ExitCode::SUCCESS)
}

/// Arguments of `flitcast node`.
#[derive(Debug, Args)]
pub struct NodeArgs {
    /// The PE to run; in a Slurm job SLURM_PROCID defines it.
    #[arg(long, value_name = "I", required_unless_present = "join")]
    pub pe: Option<u32>,
    /// Join the command at this address, now or later: the `coordinator` of a cluster file
    /// with [launch] kind = "join". Or `slurm`, under srun: a command with --cluster slurm in the
    /// script of the job (slurm:PORT, if both use it).
    #[arg(
        long,
        value_name = "HOST:PORT",
        help_heading = "Joining",
        conflicts_with_all = ["coordinator", "timeouts"]
    )]
    pub join: Option<String>,
    /// Time to try until the coordinator listens [default: 60s].
    #[arg(
        long,
        value_name = "TIME",
        help_heading = "Joining",
        requires = "join",
        conflicts_with = "stay"
    )]
    pub wait: Option<String>,
    /// Join the next command when one has ended. The process runs until it is stopped.
    #[arg(long, help_heading = "Joining", requires = "join")]
    pub stay: bool,
    /// Run the commands of `flitcast map`: a holder of the coordinator's certificate then has this
    /// user's rights on this host.
    #[arg(long, help_heading = "Joining", requires = "join")]
    pub commands: bool,
    /// Read and write files below this folder, as this user: a holder of
    /// the coordinator's certificate can then read, write and replace its files. May be given several
    /// times [default: none, synthetic messages only].
    #[arg(long, value_name = "DIR", help_heading = "Joining", requires = "join")]
    pub files: Vec<PathBuf>,
    /// Show no certificate, and require none; the command needs its --insecure as well. The PE then
    /// sends and receives synthetic messages only: it reads and writes no files and runs no commands.
    #[arg(
        long,
        help_heading = "Joining",
        requires = "join",
        conflicts_with = "credentials"
    )]
    pub insecure: bool,
    /// With --join slurm: the PE of each task, in turn [default: the task's number].
    #[arg(
        long,
        value_name = "I,J,..",
        hide = true,
        requires = "join",
        value_delimiter = ','
    )]
    pub pes: Vec<u32>,
    /// Run under a daemon: the credentials are on standard input, and the process ends when standard
    /// input ends.
    #[arg(long, hide = true, requires = "stay", conflicts_with = "insecure")]
    pub kept: bool,
    /// File for `flitcast health`, to which the PE writes its state every second.
    #[arg(long, value_name = "FILE", help_heading = "Joining", requires = "join")]
    pub health: Option<PathBuf>,
    /// The address at which the PE's children reach it [default: the address that the cluster file
    /// gives, and any port].
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,
    /// Serve Prometheus metrics at http://ADDR/metrics while the command runs, for example at
    /// 127.0.0.1:9464; unencrypted, without authentication.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Seeing it run")]
    pub metrics: Option<SocketAddr>,
    /// The folder with ca.pem and its certificate and key, p3.pem and p3.key for P3 (see
    /// `flitcast ca`).
    #[arg(long, value_name = "DIR")]
    pub credentials: Option<PathBuf>,
    /// Address of the coordinator that has started this process.
    #[arg(
        long,
        value_name = "ADDR",
        hide = true,
        required_unless_present = "join"
    )]
    pub coordinator: Option<SocketAddr>,
    /// Time limits, as in `flitcast scatter --timeouts`; a PE that joins receives them from the
    /// coordinator.
    #[arg(long, value_name = "TIMES", hide = true, value_parser = parse_timeouts)]
    pub timeouts: Option<Timeouts>,
}

/// Arguments of `flitcast health`.
#[derive(Debug, Args)]
pub struct HealthArgs {
    /// The file that a `flitcast node --join .. --health FILE` writes.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

fn parse_timeouts(text: &str) -> Result<Timeouts, String> {
    timeouts::parse(text).map_err(|faults| faults.join("; "))
}
