//! The command line of `flitcast bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::TreeRequirement;
use flitcast_proto::ops::Collective;
use flitcast_proto::schedule::pace::Pacing;

use flitcast_cluster::algorithms::candidates::{self, Candidate};
use flitcast_cluster::job::request::OF_NETWORKS;
use flitcast_cluster::options::args::TransferArgs;
use flitcast_cluster::options::format::{Format, Formats};

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
