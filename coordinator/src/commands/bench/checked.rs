//! The command line of `flitcast bench` and its checks, before anything is launched or written; and the request that
//! stands for all algorithms.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, Subcommand};
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::TreeRequirement;
use flitcast_proto::ops::Collective;
use flitcast_proto::schedule::pace::Pacing;

use super::raw::Raw;
use flitcast_cluster::algorithms::candidates::{self, Candidate, NotApplicable};
use flitcast_cluster::job::flit_size::usual_flit;
use flitcast_cluster::job::request::{
    NoPayload, OF_NETWORKS, Request, candidates_on, expected_model,
};
use flitcast_cluster::options::args::{
    BroadcastArgs, ExchangeArgs, GatherArgs, GossipArgs, RoundArgs, ScatterArgs, TransferArgs,
};
use flitcast_cluster::options::broadcast::BroadcastAlgorithm;
use flitcast_cluster::options::format::{Format, Formats};
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::site::guard::Guard;
use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::faults::Faults;

/// The operation of a bench.
#[derive(Debug, Subcommand)]
pub enum BenchOperation {
    /// Time the algorithms of scatter
    Scatter(BenchRoundArgs),
    /// Time the algorithms of gather
    Gather(BenchRoundArgs),
    /// Time the algorithms of broadcast
    Broadcast(BenchRoundArgs),
    /// Time the algorithms of gossip
    #[command(visible_alias = "allgather")]
    Gossip(BenchRoundArgs),
    /// Time the algorithms of exchange
    #[command(visible_alias = "alltoall")]
    Exchange(BenchRoundArgs),
}

impl BenchOperation {
    /// Returns an algorithm of the operation that every tree supports, and the arguments.
    pub fn parts(&mut self) -> (Algorithm, &mut BenchRoundArgs) {
        match self {
            BenchOperation::Scatter(args) => (Algorithm::FARTHEST_FIRST, args),
            BenchOperation::Gather(args) => (Algorithm::CERTIFICATION_PIPELINED, args),
            BenchOperation::Broadcast(args) => (Algorithm::BROADCAST_ROUNDS, args),
            BenchOperation::Gossip(args) => (Algorithm::GOSSIP_FLOOD, args),
            BenchOperation::Exchange(args) => (Algorithm::EXCHANGE_TREE, args),
        }
    }
}

/// The arguments that all operations share.
#[derive(Debug, Args)]
pub struct BenchRoundArgs {
    #[command(flatten)]
    pub transfer: TransferArgs,
    /// Timed rounds of each algorithm
    #[arg(long, value_name = "K", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub rounds: u64,
    /// Number of rounds before them, untimed, on each cluster that is launched
    #[arg(long, value_name = "W", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub warm_up: u64,
    /// Algorithms to time
    #[arg(long, value_name = "NAMES", default_value = "all", help = algorithms_help())]
    pub algorithms: String,
    /// Format of the result on stdout
    #[arg(long, value_parser = FORMATS, default_value = "table")]
    pub format: Format,
    /// Write every timed round to this new CSV file, with commit, host and command line
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,
}

const FORMATS: Formats = Formats(&[
    (Format::Table, "For eyes"),
    (Format::Json, "For programs"),
    (Format::Csv, "For spreadsheets: a line for each algorithm"),
]);

fn algorithms_help() -> String {
    let of_collective = Collective::ALL.map(|collective| {
        let name = collective.name();
        let mut ours = candidates::in_order(name);
        ours.sort_by_key(|one| one.operation.fits() == TreeRequirement::Paths);
        let baselines = candidates::to_measure_against(name).chain(candidates::baselines(name));
        ours.extend(baselines);
        let is_main = |one: &&Candidate| {
            let is_usual = matches!(one.pacing, None | Some(Pacing::Scheduled));
            is_usual && one.operation.fits() != TreeRequirement::Cubes
        };
        let names = ours.iter().filter(is_main).map(|one| one.name);
        let names = names.collect::<Vec<_>>().join(", ");
        match (collective, OF_NETWORKS.join(", ")) {
            (Collective::Gossip, more) => format!("{name}: {names}, and on a --network {more}"),
            _ => format!("{name}: {names}"),
        }
    });
    let list = of_collective.join("; ").replacen("scatter", "Scatter", 1);
    format!("Algorithms to time: all that support the tree, or a list. {list}")
}

/// An algorithm that is timed.
#[derive(Debug)]
pub struct Contestant {
    pub name: &'static str,
    /// Request for the runs; the number of rounds is set for each cluster.
    pub request: Request,
}

/// An algorithm that is not timed.
#[derive(Debug)]
pub struct Skipped {
    pub algorithm: &'static str,
    pub why: NotApplicable,
}

#[derive(Debug)]
pub struct Bench {
    pub operation: &'static str,
    /// The tree or network as typed, or the name of the cluster.
    pub tree: String,
    /// `--lengths` as typed.
    pub lengths: String,
    /// Number of PEs, including P0.
    pub pes: usize,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// Total bytes of all messages.
    pub bytes: u64,
    pub messages: u64,
    /// Number of timed rounds of each algorithm.
    pub rounds: u64,
    /// Number of untimed rounds before them on each cluster.
    pub warm_up: u64,
    pub guard: Guard,
    pub contestants: Vec<Contestant>,
    pub skipped: Vec<Skipped>,
    pub format: Format,
    pub raw: Option<Raw>,
}

impl Bench {
    /// Checks a command line, or returns all faults. The file of the samples is created last, if
    /// nothing is wrong.
    pub fn new(mut operation: BenchOperation) -> Result<Bench, Faults> {
        let (base_algorithm, args) = operation.parts();
        let trees = Trees::of(base_algorithm, &args.transfer.tree);
        let (fitting, skipped, mut faults) = fitting(base_algorithm, args, trees.as_ref().ok());
        let (mut request, trees) = match (request(base_algorithm, args), trees) {
            (Ok(request), Ok(trees)) => (request, trees),
            // Faults of the tree are faults of the request.
            (Err(wrong), _) | (Ok(_), Err(wrong)) => {
                faults.0.extend(wrong.into_iter().map(of_request));
                return Err(faults);
            }
        };
        let bytes = request.messages.bytes.clone();
        if bytes.iter().all(|&bytes| bytes == 0) {
            faults.add(anyhow!("every message is null: there is nothing to time"));
        }
        faults.check()?;
        let raw = args.raw.as_deref().map(Raw::create).transpose()?;
        let (tree, operation) = (&request.site.tree, request.way.operation);
        let usual = usual_flit(tree, operation, &expected_model(&request), &bytes);
        // All algorithms use the same flit size.
        let flit_bytes = *request.way.flit_bytes.get_or_insert(usual);
        let contestant = |candidate: Candidate| Contestant {
            name: candidate.name,
            request: request.done_by(&candidate, &trees.breadth_first),
        };
        let typed = &args.transfer;
        let of_size = typed.size.as_ref().map(|size| format!("equal:{size}"));
        let named = typed.tree.tree.clone().or(typed.tree.network());
        Ok(Bench {
            operation: base_algorithm.collective().name(),
            tree: named.unwrap_or(trees.schedules.name),
            lengths: typed.lengths.clone().or(of_size).unwrap_or_default(),
            pes: request.site.tree.len(),
            flit_bytes,
            bytes: request.total_bytes(),
            messages: request.message_count(),
            rounds: args.rounds,
            warm_up: args.warm_up,
            guard: request.site.guard.clone(),
            contestants: fitting.into_iter().map(contestant).collect(),
            skipped,
            format: args.format,
            raw,
        })
    }
}

/// Returns the algorithms to time and those to skip, and all faults in `--algorithms` and `--raw`.
fn fitting(
    base_algorithm: Algorithm,
    args: &BenchRoundArgs,
    trees: Option<&Trees>,
) -> (Vec<Candidate>, Vec<Skipped>, Faults) {
    let operation = base_algorithm.collective().name();
    let mut known = candidates::all(operation);
    if let (Collective::Gossip, Some(trees)) = (base_algorithm.collective(), trees) {
        known.extend(candidates_on(&trees.schedules, None));
    }
    known.extend(candidates::to_measure_against(operation));
    let (named, mut faults) = chosen(&args.algorithms, operation, &known);
    if let Some(path) = &args.raw {
        faults.0.extend(Raw::fault(path));
    }
    let is_named = named.is_some();
    let mut fitting = named.unwrap_or(known);
    let mut unfit = Vec::new();
    // A missing tree is the only fault then.
    if let Some(trees) = trees {
        fitting.retain(|candidate| {
            let fits = candidate.check(&trees.schedules, &trees.breadth_first);
            let algorithm = candidate.name;
            let fits = fits.map_err(|why| unfit.push(Skipped { algorithm, why }));
            fits.is_ok()
        });
    }
    if is_named {
        let all = unfit.drain(..);
        let all = all.map(|it| anyhow!("--algorithms: {} is {}", it.algorithm, it.why));
        faults.0.extend(all);
    }
    (fitting, unfit, faults)
}

/// Returns the fault of a request, in the terms of a bench.
fn of_request(fault: anyhow::Error) -> anyhow::Error {
    match fault.is::<NoPayload>() {
        // The original message is about files.
        true => anyhow!("no messages are given; use --lengths LENGTHS or --size SIZE"),
        false => fault,
    }
}

/// Returns the algorithms that `--algorithms` names, or `None` for all; and a fault for each
/// unknown name.
fn chosen(
    text: &str,
    operation: &'static str,
    known: &[Candidate],
) -> (Option<Vec<Candidate>>, Faults) {
    if text.trim() == "all" {
        return (None, Faults::default());
    }
    let (mut chosen, mut faults) = (Vec::new(), Faults::default());
    for name in text.split(',').map(str::trim) {
        match known.iter().find(|candidate| candidate.name == name) {
            Some(candidate) if chosen.contains(candidate) => {}
            Some(candidate) => chosen.push(*candidate),
            None => {
                let known: Vec<&str> = known.iter().map(|candidate| candidate.name).collect();
                faults.add(anyhow!(
                    "--algorithms: there is no {operation} called `{name}`; there are {}, and all",
                    known.join(", ")
                ));
            }
        }
    }
    (Some(chosen), faults)
}

/// The trees on which candidates are checked.
struct Trees {
    /// Tree of the schedules.
    schedules: Topology,
    /// Breadth-first tree of a network: it is a star if P0 is adjacent to all PEs.
    breadth_first: Topology,
}

impl Trees {
    /// Builds the trees, or returns all errors in the arguments.
    fn of(base_algorithm: Algorithm, args: &TreeArgs) -> Result<Trees, Faults> {
        let spanning = match base_algorithm.collective() {
            Collective::Scatter => SpanningArg::Bfs,
            _ => SpanningArg::Broadcast,
        };
        Ok(Trees {
            schedules: args.topology(spanning)?,
            breadth_first: args.topology(SpanningArg::Bfs)?,
        })
    }
}

fn request(base_algorithm: Algorithm, args: &BenchRoundArgs) -> Result<Request, Faults> {
    let round = RoundArgs {
        transfer: args.transfer.clone(),
        rounds: args.rounds,
        ..RoundArgs::default()
    };
    let algorithm = Some(base_algorithm.name().to_owned());
    let request = match base_algorithm.collective() {
        Collective::Broadcast => Request::broadcast(BroadcastArgs {
            round,
            algorithm: Some(BroadcastAlgorithm::Listed(base_algorithm)),
            ..BroadcastArgs::default()
        }),
        Collective::Gossip => Request::gossip(GossipArgs {
            round,
            algorithm,
            ..GossipArgs::default()
        }),
        Collective::Exchange => Request::exchange(ExchangeArgs {
            round,
            algorithm,
            ..ExchangeArgs::default()
        }),
        Collective::Gather => Request::gather(GatherArgs {
            round,
            algorithm,
            ..GatherArgs::default()
        }),
        Collective::Scatter => Request::scatter(ScatterArgs {
            round,
            algorithm,
            ..ScatterArgs::default()
        }),
    };
    Ok(Request {
        again: true,
        ..request?
    })
}
