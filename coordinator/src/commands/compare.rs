//! `flitcast compare`: times of the algorithms and of the baselines on a tree, side by side.

mod gossip;
mod lists;
mod scatter_gather;

use std::io::{self, Write};
use std::sync::Arc;

use clap::{Args, Subcommand};
use flitcast_plan::Algorithm;
use flitcast_proto::Tree;

use flitcast_cluster::algorithms::plan_limits::MAX_FLITS;
use flitcast_cluster::job::exchange_flits::ExchangeFlitsArgs;
use flitcast_cluster::job::on_links::LinkArgs;
use flitcast_cluster::options::format::{Format, TABLE_OR_JSON};
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::prices::PriceArgs;
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::text::faults::Faults;

pub fn run(operation: &CompareOperation, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let printed = match operation {
        CompareOperation::Scatter(args) => {
            scatter_gather::compared(Algorithm::FARTHEST_FIRST, args)
        }
        CompareOperation::Gather(args) => {
            scatter_gather::compared(Algorithm::CERTIFICATION_PIPELINED, args)
        }
        CompareOperation::Broadcast(args) => lists::broadcast(args),
        CompareOperation::Gossip(args) => match args.tree.network() {
            Some(network) => gossip::compared(args, &network),
            None => lists::gossip(args),
        },
        CompareOperation::Exchange(args) => lists::exchange(args),
    };
    Ok(out.write_all(printed?.as_bytes()))
}

/// The operation of a comparison.
#[derive(Debug, Subcommand)]
pub enum CompareOperation {
    /// Compare algorithms of a scatter.
    Scatter(CompareRoundArgs),
    /// Compare algorithms of a gather.
    Gather(CompareRoundArgs),
    /// Compare algorithms of a broadcast.
    Broadcast(CompareBroadcastArgs),
    /// Compare algorithms of a gossip, on networks with the figures in the paper's tables.
    #[command(visible_alias = "allgather")]
    Gossip(CompareGossipArgs),
    /// Compare algorithms of an exchange.
    #[command(visible_alias = "alltoall")]
    Exchange(CompareExchangeArgs),
}

/// Arguments of scatters and gathers.
#[derive(Debug, Args)]
pub struct CompareRoundArgs {
    #[command(flatten)]
    pub tree: TreeArgs,
    /// L_1..L_n in flits, as for plan.
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: String,
    /// Format of the comparison on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
    #[command(flatten)]
    pub links: LinkArgs,
}

/// Arguments of `flitcast compare broadcast`.
#[derive(Debug, Args)]
pub struct CompareBroadcastArgs {
    #[command(flatten)]
    pub tree: TreeArgs,
    /// The length of the message in flits.
    #[arg(long, value_name = "FLITS", value_parser = clap::value_parser!(u64).range(..=MAX_FLITS))]
    pub size: u64,
    /// The PE that holds the message, as 3 or P3 or by its name in a cluster file.
    #[arg(long, value_name = "P")]
    pub from: Option<String>,
    /// Number of ports of a PE.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// Format of the comparison on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}

/// Arguments of `flitcast compare gossip`.
#[derive(Debug, Args)]
pub struct CompareGossipArgs {
    #[command(flatten)]
    pub tree: TreeArgs,
    /// L_0..L_n in flits, as for plan, on a tree; on a --network all blocks have one length.
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: Option<String>,
    /// Number of ports of a PE of a tree.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    #[command(flatten)]
    pub prices: PriceArgs,
    /// Format of the comparison on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}

/// Arguments of `flitcast compare exchange`.
#[derive(Debug, Args)]
pub struct CompareExchangeArgs {
    #[command(flatten)]
    pub tree: TreeArgs,
    #[command(flatten)]
    pub flits: ExchangeFlitsArgs,
    /// Number of ports of a PE of a tree.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// Format of the comparison on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}

/// A tree by its name.
struct Named {
    /// `kary:2:8`, or `mesh:4x4 root 0 bfs`.
    name: String,
    tree: Arc<Tree>,
    /// Names of the PEs, by index; empty if they have none.
    names: Vec<String>,
}

/// Returns the tree, or both kinds of spanning tree of a network, unless one is named. The list is not
/// empty.
fn spanning(args: &TreeArgs) -> Result<Vec<Named>, Faults> {
    let mut trees: Vec<Named> = Vec::new();
    for topology in args.topologies(&[SpanningArg::Bfs, SpanningArg::Broadcast])? {
        match trees.iter_mut().find(|named| *named.tree == topology.tree) {
            // A tree is not compared with itself under another name.
            Some(named) => named.name.push_str(" (and broadcast)"),
            None => trees.push(Named {
                names: topology.places().names(),
                name: topology.name,
                tree: Arc::new(topology.tree),
            }),
        }
    }
    Ok(trees)
}
