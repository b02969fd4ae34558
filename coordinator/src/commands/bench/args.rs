//! The command line of `flitcast bench` as it is typed, and what it means: everything
//! that can be wrong is known here, before anything is launched or written.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use flitcast_proto::ops::{Broadcast, Direction, Exchange, Gossip, Operation};
use flitcast_proto::schedule::certification::Sync;
use thiserror::Error;

use super::raw::{Raw, RawFault};
use crate::job::flit_size::USUAL_FLIT_BYTES;
use crate::job::request::{Request, RequestError, candidates_on};
use crate::options::args::{
    BroadcastArgs, ExchangeAlgorithm, ExchangeArgs, GatherAlgorithm, GatherArgs, GossipArgs,
    OrderArg, RoundArgs, ScatterAlgorithm, ScatterArgs, TransferArgs,
};
use crate::options::broadcast::BroadcastAlgorithm;
use crate::options::format::{Format, Formats};
use crate::options::pictures::PictureArgs;
use crate::options::tree::SpanningArg;
use crate::site::guard::Guard;
use crate::site::topology::Topology;
use crate::ways::candidates::{self, Candidate, Unfit};

/// Arguments of `flitcast bench`.
#[derive(Debug, Args)]
pub struct BenchArgs {
    /// What to time.
    #[command(subcommand)]
    pub operation: BenchOperation,
}

/// What to time.
#[derive(Debug, Subcommand)]
pub enum BenchOperation {
    /// Time ways to scatter.
    Scatter(BenchRoundArgs),
    /// Time ways to gather.
    Gather(BenchRoundArgs),
    /// Time ways to broadcast.
    Broadcast(BenchRoundArgs),
    /// Time ways to gossip.
    #[command(visible_alias = "allgather")]
    Gossip(BenchRoundArgs),
    /// Time ways to exchange.
    #[command(visible_alias = "alltoall")]
    Exchange(BenchRoundArgs),
}

impl BenchOperation {
    /// What is moved, over what.
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

/// Arguments that all operations share.
#[derive(Debug, Args)]
pub struct BenchRoundArgs {
    /// What is moved, over what.
    #[command(flatten)]
    pub transfer: TransferArgs,
    /// How many rounds of each algorithm are timed.
    #[arg(long, value_name = "K", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub rounds: u64,
    /// How many rounds come before them, untimed, on each cluster that is launched.
    #[arg(long, value_name = "W", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub warm_up: u64,
    /// Which ones: all that work on the tree, or a list. Scatters: fdf, linear,
    /// binomial, adaptive; gathers: certification-serial, certification-pipelined,
    /// shoulder-tap, linear, window, binomial, adaptive; broadcasts: rounds, urgent,
    /// child-by-child; gossip: flood, ring-emulation, circulate, dissemination, direct, and on
    /// a --network approach1, halves, neighbour; exchanges: rounds, shifts, tree, at-once.
    #[arg(long, value_name = "NAMES", default_value = "all")]
    pub algorithms: String,
    /// How the result is printed on stdout.
    #[arg(long, value_parser = FORMATS, default_value = "table")]
    pub format: Format,
    /// Keep every timed round in this new CSV file, with commit, host and command line.
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,
}

/// How a bench can be printed.
const FORMATS: Formats = Formats(&[
    (Format::Table, "For eyes"),
    (Format::Json, "For programs"),
    (Format::Csv, "For spreadsheets: a line for each algorithm"),
]);

/// Something that is wrong with the command line of a bench.
#[derive(Debug, Error)]
pub enum BenchError {
    /// Something that could be wrong with a single run as well.
    #[error(transparent)]
    Request(RequestError),
    /// Nothing says what the messages are.
    #[error("say what to send: --lengths LENGTHS, or --size SIZE")]
    NoLengths,
    /// A name that is none.
    #[error("--algorithms: there is no {operation} called `{given}`; there are {known}, and all")]
    Unknown {
        /// What stood there.
        given: String,
        /// `scatter` or `gather`.
        operation: &'static str,
        /// What could have stood there.
        known: String,
    },
    /// An algorithm that was named and is not for the tree.
    #[error("--algorithms: {} is {}", .0.algorithm, .0.why)]
    Unfit(Skipped),
    /// Nothing that takes time.
    #[error("every message is null: there is nothing to time")]
    NothingToSend,
    /// The samples cannot be kept.
    #[error("--raw {0}")]
    Raw(#[from] RawFault),
}

/// An algorithm that is timed.
#[derive(Debug)]
pub struct Contestant {
    /// Its name.
    pub name: &'static str,
    /// How it runs. How many rounds, is said anew for each cluster.
    pub request: Request,
}

/// An algorithm that is not timed.
#[derive(Debug)]
pub struct Skipped {
    /// Its name.
    pub algorithm: &'static str,
    /// Why not.
    pub why: Unfit,
}

/// A command line that has been understood.
#[derive(Debug)]
pub struct Bench {
    /// `scatter` or `gather`.
    pub operation: &'static str,
    /// The tree or network, as typed; of a cluster, its name.
    pub tree: String,
    /// `--lengths`, as typed.
    pub lengths: String,
    /// PEs, P0 included.
    pub pes: usize,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// Bytes of all messages.
    pub bytes: u64,
    /// Nonnull messages.
    pub messages: u64,
    /// Rounds of each algorithm that are timed.
    pub rounds: u64,
    /// Rounds ahead of them on each cluster.
    pub warm_up: u64,
    /// How connections were guarded.
    pub guard: Guard,
    /// What is timed, and how it runs.
    pub contestants: Vec<Contestant>,
    /// What is not, and why.
    pub skipped: Vec<Skipped>,
    /// How the result is printed.
    pub format: Format,
    /// Where every sample goes.
    pub raw: Option<Raw>,
}

impl Bench {
    /// Understands a command line. The file of the samples is made last, when nothing
    /// else is wrong.
    ///
    /// # Errors
    ///
    /// All that is wrong.
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
            known.extend(candidates_on(&trees.schedules));
        }
        known.extend(candidates::to_measure_against(operation));
        let (named, mut faults) = chosen(&args.algorithms, operation, &known);
        if let Some(path) = &args.raw {
            faults.extend(Raw::fault(path).map(BenchError::from));
        }
        let mut fitting = named.clone().unwrap_or(known);
        let mut skipped = Vec::new();
        // Without a tree, that is the fault.
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
                // Ways are compared in flits of one size.
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
            // What is wrong with the tree is wrong with the request.
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
            // It would speak of files.
            RequestError::NoPayload => BenchError::NoLengths,
            other => BenchError::Request(other),
        }
    }
}

/// The trees that say which candidates work.
struct Trees {
    /// Of the schedules.
    schedules: Topology,
    /// Of a network, it says whether P0 reaches everybody.
    breadth_first: Topology,
}

/// Takes out the candidates that do not work.
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

/// A request that any tree can carry out, and its trees.
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
        pictures: PictureArgs::default(),
        rounds: args.rounds,
        format: Format::Table,
    };
    let request = match asked {
        Operation::Broadcast(_) => Request::broadcast(BroadcastArgs {
            round,
            algorithm: BroadcastAlgorithm::Rounds,
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
            round,
            algorithm: Some(GatherAlgorithm::Certification),
            sync: None,
        }),
        _ => Request::scatter(ScatterArgs {
            from: None,
            round,
            order: OrderArg::Fdf,
            algorithm: ScatterAlgorithm::Fdf,
            spread: false,
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

/// What `--algorithms` names, each once, or `None` for all; and what it names in vain.
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
