//! `flitcast tree`: prints a tree and its figures. This file has the arguments and their checks;
//! each output format is a submodule.

mod export;
mod svg;

use std::io::{self, Write};

use anyhow::anyhow;
use clap::Args;

use crate::render::tree;
use flitcast_cluster::options::format::{Format, Formats};
use flitcast_cluster::options::tree::{SpanningArg, TreeArgs};
use flitcast_cluster::text::faults::Faults;

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

/// Prints the tree, or returns all faults of the command line.
pub fn run(args: PrintTreeArgs, out: &mut dyn Write) -> Result<io::Result<()>, Faults> {
    let topology = args.tree.topology(SpanningArg::Bfs)?;
    let pes = topology.tree.len();
    Ok(match args.format {
        Format::Toml => export::toml(&topology, out),
        Format::Dot => export::dot(&topology, out),
        Format::Json => export::json(&topology, out),
        Format::Svg if pes > MAX_DRAWN => {
            return Err(anyhow!(
                "--format svg: {pes} PEs are too many to draw; the limit is {MAX_DRAWN}; use another format"
            )
            .into());
        }
        Format::Svg => svg::write(&topology, out),
        _ => tree::write(&topology, out),
    })
}
