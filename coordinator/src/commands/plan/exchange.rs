//! `flitcast plan exchange`: every PE has something for every other.

use std::io::{self, Write};

use super::args::PlanExchangeArgs;
use super::command::PlanError;

/// Plans and prints; all that is wrong with the command line, if something is.
pub fn run(
    _args: &PlanExchangeArgs,
    _out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<PlanError>> {
    todo!()
}
