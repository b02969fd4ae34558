//! `flitcast tree`: prints a tree, with what its shape costs. Its arguments, and what is wrong
//! with them; each way to print it is a file of its own.

mod export;
mod svg;

use std::io::{self, Write};

use clap::Args;
use thiserror::Error;

use crate::options::format::{Format, Formats};
use crate::options::tree::{SpanningArg, TreeArgs};
use crate::render::tree;
use crate::site::topology::TopologyError;

/// PEs of a drawing that a viewer still opens and somebody could find a PE in.
const MAX_DRAWN: usize = 5_000;

/// Arguments of `flitcast tree`.
#[derive(Debug, Args)]
pub struct PrintTreeArgs {
    /// Which tree.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// How it is printed on stdout.
    #[arg(long, value_parser = FORMATS, default_value = "text")]
    pub format: Format,
}

/// How a tree can be printed.
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

/// Something that is wrong with the command line of `flitcast tree`.
#[derive(Debug, Error)]
pub enum PrintTreeError {
    /// There is no tree.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A drawing in which nobody would find anything.
    #[error(
        "--format svg: {pes} PEs are too many to draw, at most {MAX_DRAWN} are; the other formats take any number"
    )]
    TooManyToDraw {
        /// How many.
        pes: usize,
    },
}

/// Prints the tree; all that is wrong with the command line, if something is.
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
