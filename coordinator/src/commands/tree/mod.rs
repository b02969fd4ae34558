//! `flitcast tree`: prints a tree, with what its shape costs. Its arguments, what is
//! wrong with them, and its figures; each way to print it is a file of its own.

mod export;
mod svg;
mod text;

use std::io::{self, Write};

use clap::{Args, ValueEnum};
use flitcast_proto::{PeId, Tree};
use thiserror::Error;

use crate::options::tree::{SpanningArg, TreeArgs};
use crate::site::topology::{Topology, TopologyError};
pub use text::{branches, tree as draw};

/// PEs of a drawing that a viewer still opens and somebody could find a PE in.
const MAX_DRAWN: usize = 5_000;

/// Arguments of `flitcast tree`.
#[derive(Debug, Args)]
pub struct PrintTreeArgs {
    /// Which tree.
    #[command(flatten)]
    pub tree: TreeArgs,
    /// How it is printed on stdout.
    #[arg(long, value_enum, default_value_t = TreeFormat::Text)]
    pub format: TreeFormat,
}

/// How a tree is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TreeFormat {
    /// A drawing for terminals, up to 200 PEs, and the figures.
    Text,
    /// A tree file, for --tree file:PATH.
    Toml,
    /// For Graphviz.
    Dot,
    /// A drawing.
    Svg,
    /// For programs.
    Json,
}

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
        TreeFormat::Text => text::write(&topology, out),
        TreeFormat::Toml => export::toml(&topology, out),
        TreeFormat::Dot => export::dot(&topology, out),
        TreeFormat::Json => export::json(&topology, out),
        TreeFormat::Svg if pes > MAX_DRAWN => {
            return Err(vec![PrintTreeError::TooManyToDraw { pes }]);
        }
        TreeFormat::Svg => svg::write(&topology, out),
    })
}

/// What a tree's shape costs.
pub struct Figures {
    /// Edges between P0 and the farthest PE.
    pub depth: u32,
    /// How many PEs have 0, 1, 2, ... children.
    pub pes_by_children: Vec<usize>,
    /// B: the steps in which a token reaches everybody, one neighbour a step.
    pub broadcast_steps: u64,
}

impl Figures {
    /// Of a tree.
    pub fn of(tree: &Tree) -> Figures {
        let mut pes_by_children = vec![0];
        for pe in tree.pes() {
            let children = tree.children(pe).len();
            if children >= pes_by_children.len() {
                pes_by_children.resize(children + 1, 0);
            }
            pes_by_children[children] += 1;
        }
        Figures {
            depth: tree.pes().map(|pe| tree.depth(pe)).max().unwrap_or(0),
            pes_by_children,
            broadcast_steps: tree.token_broadcast().steps(),
        }
    }

    /// PEs without children.
    pub fn leaves(&self) -> usize {
        self.pes_by_children[0]
    }

    /// d_i of the PE that has most children.
    pub fn max_degree(&self) -> usize {
        self.pes_by_children.len() - 1
    }
}

impl Topology {
    /// The node that a PE stands on, where that is another number than the PE's for
    /// some PE.
    fn node_if_told_apart(&self, pe: PeId) -> Option<u32> {
        // The root comes first and the others keep their order.
        let nodes = self.nodes.as_ref().filter(|nodes| nodes[0] != 0)?;
        Some(nodes[pe.index()])
    }
}
