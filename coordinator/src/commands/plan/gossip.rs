//! `flitcast plan gossip`: every PE sends its message to all others.

use std::io::{self, Write};

use super::args::PlanGossipArgs;
use super::command::PlanError;
use super::{gossip_on_network, gossip_on_tree};

/// Prints the plan, or returns all errors in the command line.
pub fn run(args: &PlanGossipArgs, out: &mut dyn Write) -> Result<io::Result<()>, Vec<PlanError>> {
    match args.tree.network {
        Some(_) => gossip_on_network::run(args, out),
        None => {
            args.prices.check_absent()?;
            gossip_on_tree::run(args, out)
        }
    }
}
