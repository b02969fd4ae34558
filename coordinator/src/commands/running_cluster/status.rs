//! `flitcast status`: lists running clusters, and the state of the PEs of one. The PEs join and
//! answer it as they do for any other command.

use std::collections::BTreeMap;
use std::future::pending;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use clap::Args;
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{FromPe, ToPe};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::render::exit::{FAILED, refused};
use crate::render::rows::hosts;
use crate::render::tree::in_tree_order;
use flitcast_cluster::launch::cluster::{Cluster, LaunchPlan, PeEvent};
use flitcast_cluster::observe::console::Console;
use flitcast_cluster::options::format::{Format, TABLE_OR_JSON};
use flitcast_cluster::options::tree::{ClusterArgs, SpanningArg, TreeArgs};
use flitcast_cluster::site::placement::Placement;
use flitcast_cluster::site::running_cluster::{
    InUse, KeptPe, Pes, RunningCluster, all, find, rounds,
};
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::figures::{self, fitted};
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::printable::printable;
use flitcast_cluster::text::screen::columns;
use flitcast_cluster::text::stdout;
use flitcast_cluster::text::units::{Bytes, Nanos, Seconds};

/// Time for the PEs to join: they try twice a second.
const WAIT: Duration = Duration::from_secs(2);
/// Time for the PEs to answer: more than two default heartbeats.
const ANSWER: Duration = Duration::from_secs(2);
/// Number of answers that are timed for each PE.
const ANSWERS_NEEDED: usize = 3;
/// The columns of the PEs from the least important one on.
const LEAST: [&str; 7] = [
    "starts", "process", "address", "for", "host", "memory", "lag",
];
/// Maximum number of recent commands that are shown.
const ROUNDS: usize = 3;

const EXAMPLES: &str = "\
Examples:
  flitcast status
  flitcast status cluster.toml
  flitcast status cluster.toml --format json

Exit status: 0 if every PE is there, 1 if one is not, 2 if the cluster is not up.";

/// Arguments of `flitcast status`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StatusArgs {
    /// Cluster file (TOML) [default: list all running clusters]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Format of the result on stdout
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    format: Format,
}

pub fn status(args: &StatusArgs, logs: &[String]) -> anyhow::Result<ExitCode> {
    let out = &mut stdout::lock();
    let Some(file) = &args.file else {
        let clusters = all().map_err(|fault| refused([fault]))?;
        print_all(&clusters, args.format, out)?;
        return Ok(ExitCode::SUCCESS);
    };
    let found = find(file).map_err(|fault| refused([fault]))?;
    let is_down = || refused([format!("{}: this cluster is not up", file.display())]);
    let kept = found.ok_or_else(is_down)?;
    let (topology, occupancy) = look(&kept, logs)?;
    let pes = Pes::read(&kept.folder)?.context("its keeper has not begun yet")?;
    let is_whole = match &occupancy {
        Occupancy::InUse(_) => pes.pes.iter().all(|kept| kept.process.is_some()),
        Occupancy::Here(here) => here.len() == kept.record.pes,
    };
    match args.format {
        Format::Json => print_json(&kept, &topology, &pes, &occupancy, out)?,
        _ => print_one(&kept, &topology, &pes, &occupancy, out)?,
    }
    Ok(match is_whole {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(FAILED),
    })
}

/// The present PEs.
enum Occupancy {
    /// Another command, described here, uses the PEs.
    InUse(String),
    /// PEs that have joined.
    Here(BTreeMap<PeId, Here>),
}

impl Occupancy {
    /// Returns the answers of a PE, if it has joined.
    fn here(&self, pe: PeId) -> Option<&Here> {
        match self {
            Occupancy::Here(here) => here.get(&pe),
            Occupancy::InUse(_) => None,
        }
    }
}

/// A PE that has joined and answered.
#[derive(Clone)]
struct Here {
    pinged_at: Instant,
    /// Times until each answer.
    lags: Vec<Duration>,
    resident_bytes: u64,
}

impl Here {
    /// Returns the median time to answer, after enough answers.
    fn lag(&self) -> Option<Duration> {
        let mut lags = self.lags.clone();
        lags.sort();
        // An answer may belong to the heartbeat just before the ping; the median excludes this.
        (lags.len() >= ANSWERS_NEEDED).then(|| lags[lags.len() / 2])
    }
}

/// Lets the PEs join and pings them.
fn look(kept: &RunningCluster, logs: &[String]) -> anyhow::Result<(Topology, Occupancy)> {
    let tree = TreeArgs::from(ClusterArgs {
        file: kept.record.file.clone(),
        root: None,
        spanning: None,
    });
    let topology = tree.topology(SpanningArg::Bfs).map_err(refused)?;
    let mut placement = topology.places();
    kept.adopt(&mut placement, WAIT);
    let _used = match kept.take("flitcast status") {
        Ok(used) => used,
        Err(error) => {
            let InUse { holder, .. } = error.downcast()?;
            return Ok((topology, Occupancy::InUse(holder)));
        }
    };
    let occupancy = flitcast_cluster::launch::runtime::conducting()?
        .block_on(ping_all(kept, &topology, &placement, logs))?;
    Ok((topology, occupancy))
}

/// Waits until all PEs of a running cluster have joined, or for some time until any have.
pub async fn joined(
    kept: &RunningCluster,
    topology: &Topology,
    placement: &Placement,
    logs: &[String],
    require_all: bool,
) -> anyhow::Result<Cluster> {
    let program = std::env::current_exe()?;
    let pes: Vec<PeId> = topology.tree.pes().collect();
    let plan = LaunchPlan {
        program: &program,
        pes: &pes,
        tree: &topology.tree,
        placement,
        guard: &kept.record.guard,
        // Without all of them, it does not matter which of them stay.
        again: require_all,
        require_all,
        commands: false,
        logs,
        timeouts: &topology.settings.timeouts,
    };
    let (console, given_up) = (Console::of_stderr(), CancellationToken::new());
    Ok(Cluster::launch(plan, &console, &given_up).await?)
}

async fn ping_all(
    kept: &RunningCluster,
    topology: &Topology,
    placement: &Placement,
    logs: &[String],
) -> anyhow::Result<Occupancy> {
    let mut cluster = joined(kept, topology, placement, logs, false).await?;
    let mut here: BTreeMap<PeId, Here> = BTreeMap::new();
    let there = cluster.pes().filter(|pe| cluster.register(*pe).is_some());
    let there = there.count();
    let deadline = Instant::now() + ANSWER;
    while here.values().filter(|one| one.lag().is_some()).count() < there {
        let Some((pe, event)) = cluster.next_event(deadline).await else {
            break;
        };
        let PeEvent::Reply(FromPe::Pong(pong)) = event else {
            continue;
        };
        // A ping follows each answer, the first one the answer to a heartbeat.
        let pinged_at = Instant::now();
        let one = here.entry(pe);
        let one = one.and_modify(|one| one.lags.push(one.pinged_at.elapsed()));
        let one = one.or_insert(Here {
            pinged_at,
            lags: Vec::new(),
            resident_bytes: 0,
        });
        (one.pinged_at, one.resident_bytes) = (pinged_at, pong.counts.resident_bytes);
        if one.lag().is_none() {
            cluster.send_command(pe, ToPe::Ping { look: false }).await;
        }
    }
    cluster.stop(false, pending()).await;
    Ok(Occupancy::Here(here))
}

fn print_all(clusters: &[RunningCluster], format: Format, out: &mut dyn Write) -> io::Result<()> {
    if format == Format::Json {
        let clusters = clusters.iter().map(|kept| {
            json!({
                "name": kept.record.name,
                "file": kept.record.file.display().to_string(),
                "pes": kept.record.pes,
                "up_s": age(kept.record.since).as_secs(),
            })
        });
        let clusters: Vec<_> = clusters.collect();
        return writeln!(out, "{}", json!({ "clusters": clusters }));
    }
    if clusters.is_empty() {
        return writeln!(out, "no cluster is up");
    }
    let mut table = figures::table(["cluster", "PEs", "up for", "file"]);
    for kept in clusters {
        table.add_row([
            printable(&kept.record.name).to_string(),
            kept.record.pes.to_string(),
            format_duration(age(kept.record.since)),
            printable(kept.record.file.display()).to_string(),
        ]);
    }
    writeln!(out, "{}", fitted(table, 1, &["PEs", "up for"], columns()))
}

/// Prints the daemon, the log and the use of the cluster.
pub fn print_processes(kept: &RunningCluster, out: &mut dyn Write) -> io::Result<()> {
    let file = printable(kept.record.file.display());
    let pes = Pes::read(&kept.folder).ok().flatten();
    let keeper = pes.map(|pes| format!("process {}", pes.keeper));
    let keeper = keeper.unwrap_or("nobody yet".to_owned());
    let log = kept.folder.join("log");
    writeln!(out, "  kept by   {keeper}")?;
    writeln!(out, "  log       {}", printable(log.display()))?;
    writeln!(out, "  used by   flitcast scatter --cluster {file} ..")?;
    writeln!(out, "  until     flitcast down {file}")
}

fn print_one(
    kept: &RunningCluster,
    topology: &Topology,
    pes: &Pes,
    occupancy: &Occupancy,
    out: &mut dyn Write,
) -> io::Result<()> {
    let record = &kept.record;
    let guard = record.guard.description();
    writeln!(out, "{}", printable(&record.name))?;
    writeln!(out, "  file      {}", printable(record.file.display()))?;
    let (up, keeper) = (format_duration(age(record.since)), pes.keeper);
    writeln!(out, "  up for    {up}, kept by process {keeper}")?;
    let coordinator = record.coordinator;
    writeln!(out, "  commands  listen on {coordinator} for the PEs")?;
    writeln!(out, "  security  {}", printable(guard.unwrap_or_default()))?;
    if let Occupancy::InUse(holder) = occupancy {
        let holder = printable(holder);
        writeln!(out, "  in use    by {holder}; flitcast watch shows it")?;
    }
    let done = rounds::read(&kept.folder);
    for (place, round) in done.iter().rev().take(ROUNDS).enumerate() {
        let label = if place == 0 { "last" } else { "" };
        let times = counted(round.rounds, "round", "rounds");
        let (what, outcome) = (printable(&round.what), printable(&round.outcome));
        let ago = format_duration(age(round.at));
        writeln!(out, "  {label:<9} {what}, {times}, {ago} ago: {outcome}")?;
    }
    writeln!(out)?;
    let places = topology.places();
    let hosts = hosts(&places, &BTreeMap::new());
    let host = hosts.as_ref().map(|_| "host");
    let others = ["address", "process", "for", "starts", "lag", "memory", ""];
    let headings = ["PE"].into_iter().chain(host).chain(others);
    let mut table = figures::table(headings);
    for pe in in_tree_order(&topology.tree) {
        let place = &places.places[pe.index()];
        let process = pes.pes.iter().find(|kept| kept.pe == pe);
        let here = occupancy.here(pe);
        let dash = || "-".to_owned();
        let depth = topology.tree.depth(pe) as usize;
        let called = places.called(pe);
        let called = format!("{}{}", "  ".repeat(depth), printable(&called));
        let host = hosts.iter().map(|hosts| hosts[pe.index()].clone());
        let others = [
            place.address.to_string(),
            process
                .and_then(|kept| kept.process)
                .map_or_else(dash, |id| id.to_string()),
            process.map_or_else(dash, |kept| format_duration(age(kept.since))),
            process.map_or_else(dash, |kept| kept.starts.to_string()),
            here.and_then(Here::lag)
                .map_or_else(dash, |lag| Nanos(lag.as_nanos() as u64).to_string()),
            here.map_or_else(dash, |one| Bytes(one.resident_bytes).to_string()),
            state(process, occupancy, pe),
        ];
        table.add_row([called].into_iter().chain(host).chain(others));
    }
    let names = 1 + usize::from(hosts.is_some());
    write!(out, "{}", fitted(table, names, &LEAST, columns()))
}

/// Describes the state of a PE; the text is empty if the PE is present.
fn state(process: Option<&KeptPe>, occupancy: &Occupancy, pe: PeId) -> String {
    let is_here = match occupancy {
        Occupancy::Here(here) => here.contains_key(&pe),
        Occupancy::InUse(_) => true,
    };
    let end = process.and_then(|kept| kept.end.as_deref());
    let end = end.map_or(String::new(), |end| format!(": {}", printable(end)));
    match process {
        Some(kept) if kept.process.is_none() => format!("is started again{end}"),
        Some(kept) if !is_here && age(kept.since) < WAIT => format!("is late{end}"),
        _ if !is_here => format!("does not join{end}"),
        Some(kept) if kept.starts > 1 => format!("was started again{end}"),
        _ => String::new(),
    }
}

fn print_json(
    kept: &RunningCluster,
    topology: &Topology,
    pes: &Pes,
    occupancy: &Occupancy,
    out: &mut dyn Write,
) -> io::Result<()> {
    let places = topology.places();
    let all = topology.tree.pes().map(|pe| {
        let place = &places.places[pe.index()];
        let process = pes.pes.iter().find(|kept| kept.pe == pe);
        let here = occupancy.here(pe);
        json!({
            "pe": pe.0,
            "name": place.name,
            "address": place.address,
            "parent": topology.tree.parent(pe).map(|parent| parent.0),
            "process": process.and_then(|kept| kept.process),
            "for_s": process.map(|kept| age(kept.since).as_secs()),
            "starts": process.map(|kept| kept.starts),
            "last_end": process.and_then(|kept| kept.end.clone()),
            "is_here": match occupancy { Occupancy::InUse(_) => None, Occupancy::Here(_) => Some(here.is_some()) },
            "lag_ns": here.and_then(Here::lag).map(|lag| lag.as_nanos() as u64),
            "resident_bytes": here.map(|one| one.resident_bytes),
        })
    });
    let done = rounds::read(&kept.folder);
    let done = done.iter().map(|round| {
        json!({
            "what": round.what,
            "rounds": round.rounds,
            "ago_s": age(round.at).as_secs(),
            "outcome": round.outcome,
        })
    });
    let object = json!({
        "name": kept.record.name,
        "file": kept.record.file.display().to_string(),
        "up_s": age(kept.record.since).as_secs(),
        "keeper": pes.keeper,
        "coordinator": kept.record.coordinator.to_string(),
        "security": kept.record.guard.name(),
        "in_use": match occupancy {
            Occupancy::InUse(holder) => Some(holder),
            Occupancy::Here(_) => None,
        },
        "pes": all.collect::<Vec<_>>(),
        "commands": done.collect::<Vec<_>>(),
    });
    writeln!(out, "{object}")
}

fn age(since: SystemTime) -> Duration {
    since.elapsed().unwrap_or_default()
}

fn format_duration(time: Duration) -> String {
    Seconds(time.as_secs()).to_string()
}
