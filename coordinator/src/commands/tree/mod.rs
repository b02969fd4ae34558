//! `flitcast tree`: prints a tree and its figures. This file has the arguments and their checks;
//! each output format is a submodule.

mod export;
mod svg;

use std::io::{self, Write};

use clap::Args;
use thiserror::Error;

use crate::options::format::{Format, Formats};
use crate::options::tree::{SpanningArg, TreeArgs};
use crate::render::tree;
use crate::site::topology::TopologyError;

/// Maximum number of PEs of a drawing, so that viewers can open it and a PE can be found in it.
const MAX_DRAWN: usize = 5_000;

/// Arguments of `flitcast tree`.
#[derive(Debug, Args)]
pub struct PrintTreeArgs {
    /// Tree.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// Format on stdout
    #[arg(long, value_parser = FORMATS, default_value = "text")]
    pub format: Format,
}

/// The output formats of a tree.
const FORMATS: Formats = Formats(&[
    (
        Format::Text,
        "A drawing for terminals, up to 200 PEs, and the figures",
    ),
    (Format::Toml, "A tree file, for --tree file:PATH"),
    (Format::Dot, "For Graphviz"),
    (Format::Svg, "A drawing"),
    (Format::Json, "For programs"),
]);

/// A fault of the command line of `flitcast tree`.
#[derive(Debug, Error)]
pub enum PrintTreeError {
    /// The tree is invalid.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The tree is too large to draw.
    #[error(
        "--format svg: {pes} PEs are too many to draw; the limit is {MAX_DRAWN}; use another format"
    )]
    TooManyToDraw {
        /// Number of PEs.
        pes: usize,
    },
}

/// Prints the tree, or returns all faults of the command line.
pub fn run(
    args: PrintTreeArgs,
    out: &mut dyn Write,
) -> Result<io::Result<()>, Vec<PrintTreeError>> {
    let topology = args.tree.topology(SpanningArg::Bfs);
    let topology = topology.map_err(|faults| {
        let faults = faults.into_iter().map(PrintTreeError::from);
        faults.collect::<Vec<_>>()
    })?;
    let pes = topology.tree.len();
    Ok(match args.format {
        Format::Toml => export::toml(&topology, out),
        Format::Dot => export::dot(&topology, out),
        Format::Json => export::json(&topology, out),
        Format::Svg if pes > MAX_DRAWN => {
            return Err(vec![PrintTreeError::TooManyToDraw { pes }]);
        }
        Format::Svg => svg::write(&topology, out),
        _ => tree::write(&topology, out),
    })
}
