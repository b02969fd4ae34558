//! Gossip on a ring, an array, a mesh, a torus, or among PEs that all reach each other, in whole
//! steps of the wormhole model.

use std::io::{self, Write};

use super::args::PlanGossipArgs;
use super::command::PlanError;

/// Plans and prints; all that is wrong with the command line, if something is.
pub fn run(_args: &PlanGossipArgs, _out: &mut dyn Write) -> Result<io::Result<()>, Vec<PlanError>> {
    todo!()
}
