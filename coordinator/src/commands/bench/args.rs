//! The command line of `flitcast bench` and its checks, before anything is launched or written.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use flitcast_proto::ops::{Broadcast, Direction, Exchange, Gossip, Operation};
use flitcast_proto::schedule::certification::Sync;
use thiserror::Error;

use super::raw::{Raw, RawFault};
use crate::job::request::{Request, RequestError, candidates_on};
use crate::options::args::{
    BroadcastArgs, ExchangeAlgorithm, ExchangeArgs, GatherAlgorithm, GatherArgs, GossipArgs,
    RoundArgs, ScatterAlgorithm, ScatterArgs, TransferArgs,
};
use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::format::{Format, Formats};
use crate::options::order::MessageOrder;
use crate::options::pictures::PictureArgs;
use crate::options::tree::SpanningArg;
use crate::site::guard::Guard;
use crate::site::topology::Topology;
use crate::tuning::USUAL_FLIT_BYTES;
use crate::ways::candidates::{self, Candidate, Unfit};

/// Arguments of `flitcast bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// Operation to time.
    #[command(subcommand)]
    pub operation: BenchOperation,
}

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
    /// Returns the arguments about messages and tree.
    pub fn transfer(&self) -> &TransferArgs {
        match self {
            BenchOperation::Scatter(args)
            | BenchOperation::Gather(args)
            | BenchOperation::Broadcast(args)
            | BenchOperation::Gossip(args)
            | BenchOperation::Exchange(args) => &args.transfer,
        }
    }
}

/// The arguments that all operations share.
#[derive(Debug, Args)]
pub struct BenchRoundArgs {
    /// Messages and tree.
    #[command(flatten)]
    pub transfer: TransferArgs,
    /// Number of timed rounds of each algorithm
    #[arg(long, value_name = "K", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub rounds: u64,
    /// Number of rounds before them, untimed, on each cluster that is launched
    #[arg(long, value_name = "W", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub warm_up: u64,
    /// Algorithms to time: all that support the tree, or a list. Scatter: fdf, linear, binomial,
    /// adaptive; gather: certification-serial, certification-pipelined, shoulder-tap, linear,
    /// window, binomial, adaptive; broadcast: rounds, urgent, child-by-child; gossip: flood,
    /// circulate, dissemination, direct, and on a --network approach1, halves, neighbour; exchange: rounds, shifts, tree, at-once
    #[arg(long, value_name = "NAMES", default_value = "all")]
    pub algorithms: String,
    /// Format of the result on stdout
    #[arg(long, value_parser = FORMATS, default_value = "table")]
    pub format: Format,
    /// Write every timed round to this new CSV file, with commit, host and command line
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,
}

/// The output formats of a bench.
const FORMATS: Formats = Formats(&[
    (Format::Table, "For eyes"),
    (Format::Json, "For programs"),
    (Format::Csv, "For spreadsheets: a line for each algorithm"),
]);

/// A fault of the command line of a bench.
#[derive(Debug, Error)]
pub enum BenchError {
    /// A fault that a single run could have as well.
    #[error(transparent)]
    Request(RequestError),
    /// No option defines the messages.
    #[error("no messages are given; use --lengths LENGTHS or --size SIZE")]
    NoLengths,
    /// An unknown algorithm.
    #[error("--algorithms: there is no {operation} called `{given}`; there are {known}, and all")]
    Unknown {
        /// Name as typed.
        given: String,
        /// Name of the operation.
        operation: &'static str,
        /// Known names.
        known: String,
    },
    /// A requested algorithm that does not support the tree.
    #[error("--algorithms: {} is {}", .0.algorithm, .0.why)]
    Unfit(Skipped),
    /// All messages are null, so nothing takes time.
    #[error("every message is null: there is nothing to time")]
    NothingToSend,
    /// The file of the samples cannot be written.
    #[error("--raw {0}")]
    Raw(#[from] RawFault),
}

/// An algorithm that is timed.
#[derive(Debug)]
pub struct Contestant {
    /// Name of the algorithm.
    pub name: &'static str,
    /// Request for the runs; the number of rounds is set for each cluster.
    pub request: Request,
}

/// An algorithm that is not timed.
#[derive(Debug)]
pub struct Skipped {
    /// Name of the algorithm.
    pub algorithm: &'static str,
    /// Reason.
    pub why: Unfit,
}

/// A valid bench.
#[derive(Debug)]
pub struct Bench {
    /// Name of the operation.
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
    /// Number of nonnull messages.
    pub messages: u64,
    /// Number of timed rounds of each algorithm.
    pub rounds: u64,
    /// Number of untimed rounds before them on each cluster.
    pub warm_up: u64,
    /// Security of connections.
    pub guard: Guard,
    /// Algorithms to time.
    pub contestants: Vec<Contestant>,
    /// Algorithms that are not timed.
    pub skipped: Vec<Skipped>,
    /// Output format.
    pub format: Format,
    /// File for all samples.
    pub raw: Option<Raw>,
}

impl Bench {
    /// Checks a command line. The file of the samples is created last, if nothing is wrong.
    ///
    /// # Errors
    ///
    /// Returns all faults.
    pub fn new(args: BenchArgs) -> Result<Bench, Vec<BenchError>> {
        let (asked, args) = match args.operation {
            BenchOperation::Scatter(args) => (Operation::Scatter, args),
            BenchOperation::Gather(args) => (Operation::Certification(Sync::Pipelined), args),
            BenchOperation::Broadcast(args) => (Operation::Broadcast(Broadcast::Rounds), args),
            BenchOperation::Gossip(args) => (Operation::Gossip(Gossip::Flood), args),
            BenchOperation::Exchange(args) => (Operation::Exchange(Exchange::Tree), args),
        };
        let operation = asked.name();
        let (request, trees) = base(asked, &args);
        let mut known = candidates::all(operation);
        if let (Operation::Gossip(_), Ok(trees)) = (asked, &trees) {
            known.extend(candidates_on(&trees.schedules, None));
        }
        known.extend(candidates::to_measure_against(operation));
        let (named, mut faults) = chosen(&args.algorithms, operation, &known);
        if let Some(path) = &args.raw {
            faults.extend(Raw::fault(path).map(BenchError::from));
        }
        let mut fitting = named.clone().unwrap_or(known);
        let mut skipped = Vec::new();
        // A missing tree is the only fault then.
        if let Ok(trees) = &trees {
            let unfit = part(&mut fitting, trees);
            match named {
                None => skipped = unfit,
                Some(_) => faults.extend(unfit.into_iter().map(BenchError::Unfit)),
            }
        }
        let named_tree = trees.as_ref().map(|trees| trees.schedules.name.clone());
        let named_tree = named_tree.unwrap_or_default();
        let mut contestants = Vec::new();
        let (mut pes, mut lengths): (usize, Vec<u64>) = (0, Vec::new());
        match (request, trees) {
            (Ok(mut request), Ok(trees)) => {
                // All algorithms use the same flit size.
                request.way.flit_bytes.get_or_insert(USUAL_FLIT_BYTES);
                let bytes = request.messages.bytes.clone();
                let tree = &request.site.tree;
                pes = tree.len();
                lengths = asked.lengths(tree, &bytes).collect();
                let contestant = |candidate: Candidate| Contestant {
                    name: candidate.name,
                    request: request.done_by(&candidate, &bytes, &trees.breadth_first),
                };
                contestants = fitting.into_iter().map(contestant).collect();
                if bytes.iter().all(|&bytes| bytes == 0) {
                    faults.push(BenchError::NothingToSend);
                }
            }
            // Faults of the tree are faults of the request.
            (Err(wrong), _) | (Ok(_), Err(wrong)) => {
                faults.extend(wrong.into_iter().map(BenchError::from));
            }
        }
        let raw = match &args.raw {
            Some(path) if faults.is_empty() => Raw::create(path)
                .map_err(|fault| faults.push(fault.into()))
                .ok(),
            _ => None,
        };
        if !faults.is_empty() {
            return Err(faults);
        }
        let TransferArgs {
            tree,
            size,
            lengths: dealt,
            ..
        } = args.transfer;
        Ok(Bench {
            operation,
            tree: tree.tree.or(tree.network).unwrap_or(named_tree),
            lengths: dealt
                .or(size.map(|size| format!("equal:{size}")))
                .unwrap_or_default(),
            pes,
            flit_bytes: contestants
                .first()
                .and_then(|c| c.request.way.flit_bytes)
                .unwrap_or(USUAL_FLIT_BYTES),
            bytes: lengths.iter().sum(),
            messages: lengths.len() as u64,
            rounds: args.rounds,
            warm_up: args.warm_up,
            guard: contestants
                .first()
                .map_or(Guard::Secret, |c| c.request.site.guard.clone()),
            contestants,
            skipped,
            format: args.format,
            raw,
        })
    }
}

impl From<RequestError> for BenchError {
    fn from(error: RequestError) -> BenchError {
        match error {
            // The original message is about files.
            RequestError::NoPayload => BenchError::NoLengths,
            other => BenchError::Request(other),
        }
    }
}

/// The trees on which candidates are checked.
struct Trees {
    /// Tree of the schedules.
    schedules: Topology,
    /// Breadth-first tree of a network: it is a star if P0 is adjacent to all PEs.
    breadth_first: Topology,
}

/// Removes the candidates that do not support the trees and returns them.
fn part(candidates: &mut Vec<Candidate>, trees: &Trees) -> Vec<Skipped> {
    let mut unfit = Vec::new();
    candidates.retain(|candidate| {
        let fits = candidate.check(&trees.schedules, &trees.breadth_first);
        let algorithm = candidate.name;
        fits.map_err(|why| unfit.push(Skipped { algorithm, why }))
            .is_ok()
    });
    unfit
}

/// Returns a request that every tree supports, and its trees.
fn base(
    asked: Operation,
    args: &BenchRoundArgs,
) -> (
    Result<Request, Vec<RequestError>>,
    Result<Trees, Vec<RequestError>>,
) {
    let round = RoundArgs {
        transfer: args.transfer.clone(),
        packets: None,
        cover: false,
        input: None,
        output: None,
        force: false,
        retry: None,
        dry_run: false,
        compares: false,
        pictures: PictureArgs::default(),
        rounds: args.rounds,
        format: Format::Table,
    };
    let request = match asked {
        Operation::Broadcast(_) => Request::broadcast(BroadcastArgs {
            round,
            algorithm: Some(BroadcastAlgorithm::Rounds),
            from: None,
        }),
        Operation::Gossip(_) => Request::gossip(GossipArgs {
            round,
            algorithm: Some("flood".to_owned()),
            pacing: None,
            ports: None,
        }),
        Operation::Exchange(_) => Request::exchange(ExchangeArgs {
            round,
            algorithm: Some(ExchangeAlgorithm::Tree),
            pacing: None,
            ports: None,
        }),
        _ if asked.direction() == Direction::Up => Request::gather(GatherArgs {
            to: None,
            pacing: None,
            order: None,
            round,
            algorithm: Some(GatherAlgorithm::Certification),
            sync: None,
            ports: None,
        }),
        _ => Request::scatter(ScatterArgs {
            from: None,
            round,
            order: MessageOrder::Tail,
            algorithm: Some(ScatterAlgorithm::Fdf),
            spread: false,
            ports: None,
        }),
    };
    let spanning = match asked {
        Operation::Scatter => SpanningArg::Bfs,
        _ => SpanningArg::Broadcast,
    };
    let request = request.map(|request| Request {
        again: true,
        ..request
    });
    let tree = |spanning| {
        let topology = args.transfer.tree.topology(spanning);
        topology.map_err(|faults| {
            faults
                .into_iter()
                .map(RequestError::from)
                .collect::<Vec<_>>()
        })
    };
    let trees = tree(spanning).and_then(|schedules| {
        Ok(Trees {
            schedules,
            breadth_first: tree(SpanningArg::Bfs)?,
        })
    });
    (request, trees)
}

/// Returns the algorithms that `--algorithms` names, or `None` for all; and a fault for each
/// unknown name.
fn chosen(
    text: &str,
    operation: &'static str,
    known: &[Candidate],
) -> (Option<Vec<Candidate>>, Vec<BenchError>) {
    if text.trim() == "all" {
        return (None, Vec::new());
    }
    let (mut chosen, mut faults) = (Vec::new(), Vec::new());
    for name in text.split(',').map(str::trim) {
        match known.iter().find(|candidate| candidate.name == name) {
            Some(candidate) if chosen.contains(candidate) => {}
            Some(candidate) => chosen.push(*candidate),
            None => faults.push(BenchError::Unknown {
                given: name.to_owned(),
                operation,
                known: known.iter().map(|c| c.name).collect::<Vec<_>>().join(", "),
            }),
        }
    }
    (Some(chosen), faults)
}
