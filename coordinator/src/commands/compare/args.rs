//! The command line of `flitcast compare`.

use clap::{Args, Subcommand};

use super::broadcast::CompareBroadcastArgs;
use super::exchange::CompareExchangeArgs;
use super::gossip_args::CompareGossipArgs;
use flitcast_cluster::job::on_links::LinkArgs;
use flitcast_cluster::options::format::{Format, TABLE_OR_JSON};
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
