//! The command line of `flitcast compare gossip`.

use clap::Args;

use flitcast_cluster::options::format::{Format, TABLE_OR_JSON};
use flitcast_cluster::options::ports::Ports;
use flitcast_cluster::options::prices::PriceArgs;
use flitcast_cluster::options::tree::TreeArgs;

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
