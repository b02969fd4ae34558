//! The command line of `flitcast compare`.

use clap::{Args, Subcommand};

use flitcast_cluster::algorithms::plan_limits::MAX_FLITS;
use flitcast_cluster::job::exchange_flits::ExchangeFlitsArgs;
use flitcast_cluster::job::on_links::LinkArgs;
use flitcast_cluster::options::format::{Format, TABLE_OR_JSON};
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::prices::PriceArgs;
use flitcast_cluster::options::tree::TreeArgs;

/// Arguments of `flitcast compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// Operation to compare.
    #[command(subcommand)]
    pub operation: CompareOperation,
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
    /// The tree; a network is compared over both kinds of spanning tree, unless one is named.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// L_1..L_n in flits, as for plan.
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: String,
    /// Format of the comparison on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
    /// The links of the plans.
    #[command(flatten)]
    pub links: LinkArgs,
}

/// Arguments of `flitcast compare broadcast`.
#[derive(Debug, Args)]
pub struct CompareBroadcastArgs {
    /// The tree; a network is compared over both kinds of spanning tree, unless one is named.
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
    /// The tree; as --network a ring, an array, a mesh, a torus or complete:N.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// L_0..L_n in flits, as for plan, on a tree; on a --network all blocks have one length.
    #[arg(long, value_name = "LENGTHS")]
    pub lengths: Option<String>,
    /// Number of ports of a PE of a tree.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// The prices of steps; t_l is for a whole block.
    #[command(flatten)]
    pub prices: PriceArgs,
    /// Format of the comparison on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}

/// Arguments of `flitcast compare exchange`.
#[derive(Debug, Args)]
pub struct CompareExchangeArgs {
    /// The tree; a network is compared over both kinds of spanning tree, unless one is named, and
    /// complete:N without a tree.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// The lengths of the messages.
    #[command(flatten)]
    pub flits: ExchangeFlitsArgs,
    /// Number of ports of a PE of a tree.
    #[arg(long, value_enum, default_value_t = Ports::Single)]
    pub ports: Ports,
    /// Format of the comparison on stdout.
    #[arg(long, value_parser = TABLE_OR_JSON, default_value = "table")]
    pub format: Format,
}
