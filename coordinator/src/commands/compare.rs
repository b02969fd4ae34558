//! `flitcast compare`: times of the algorithms and of the baselines on a tree, side by side.

mod args;
mod broadcast;
mod crossings;
mod exchange;
mod gossip;
mod gossip_on_tree;
mod gossip_rows;
mod scatter_gather;
mod table;
mod trees;

use std::io::{self, Write};

use flitcast_plan::Algorithm;

pub use args::CompareArgs;
use args::CompareOperation;

use flitcast_cluster::text::faults::Faults;

/// Prints the comparison, or returns all errors in the command line.
pub fn run(args: &CompareArgs, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let printed = match &args.operation {
        CompareOperation::Scatter(args) => {
            scatter_gather::compared(Algorithm::FARTHEST_FIRST, args)
        }
        CompareOperation::Gather(args) => {
            scatter_gather::compared(Algorithm::CERTIFICATION_PIPELINED, args)
        }
        CompareOperation::Broadcast(args) => broadcast::compared(args),
        CompareOperation::Gossip(args) => match args.tree.network() {
            Some(network) => gossip::compared(args, &network),
            None => gossip_on_tree::compared(args),
        },
        CompareOperation::Exchange(args) => exchange::compared(args),
    };
    Ok(out.write_all(printed?.as_bytes()))
}
