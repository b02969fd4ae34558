//! Gossip over the edges of a tree.

use std::io::{self, Write};

use super::args::PlanGossipArgs;
use super::command::PlanError;

/// Plans and prints; all that is wrong with the command line, if something is.
pub fn run(_args: &PlanGossipArgs, _out: &mut dyn Write) -> Result<io::Result<()>, Vec<PlanError>> {
    todo!()
}
