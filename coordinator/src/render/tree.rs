//! A tree for terminals: a drawing with box characters, and the figures of the tree.

use std::io::{self, Write};

use flitcast_proto::{PeId, Tree};

use flitcast_cluster::site::topology::Topology;
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::printable::printable;

/// Maximum number of PEs of a tree that is drawn, so that it fits into a few screens.
const MAX_DRAWN: usize = 200;
/// Maximum number of classes of PEs, by number of children, that the summary lists one by one.
const MAX_NAMED: usize = 8;

/// Prints the name, the drawing if the tree is not too large, and the figures.
pub fn write(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n", topology.name)?;
    draw(topology, out)
}

/// Prints the drawing if the tree is not too large, and the figures.
pub fn draw(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    let pes = topology.tree.len();
    match pes <= MAX_DRAWN {
        true => drawing(topology, out)?,
        false => writeln!(
            out,
            "  ({pes} PEs are not drawn; --format dot or json has them)"
        )?,
    }
    writeln!(out)?;
    summary(topology, out)
}

/// Prints each PE on a line below its parent, in a cluster also the PE's name and address in
/// columns.
fn drawing(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    let drawn = branches(|pe| topology.tree.children(pe));
    let names = |pe: PeId| {
        let place = &topology.placement.as_ref()?.places[pe.index()];
        Some((printable(place.name.as_deref()?), place.address))
    };
    let width = |text: &str| text.chars().count();
    let left = drawn.iter().map(|(pe, before)| {
        let name = names(*pe).map(|(name, _)| format!(" {name}"));
        format!("{before}{pe}{}", name.unwrap_or_default())
    });
    let left: Vec<String> = left.collect();
    let widest = left.iter().map(|text| width(text)).max().unwrap_or(0);
    for ((pe, _), left) in drawn.iter().zip(&left) {
        match (names(*pe), topology.node_if_several(*pe)) {
            (Some((_, address)), _) => {
                let gap = " ".repeat(widest - width(left));
                writeln!(out, "{left}{gap}  {address}")?;
            }
            (None, Some(node)) => writeln!(out, "{left} (node {node})")?,
            (None, None) => writeln!(out, "{left}")?,
        }
    }
    Ok(())
}

/// Returns the PEs in depth-first order: each parent before its children.
pub fn in_tree_order(tree: &Tree) -> Vec<PeId> {
    let mut order = Vec::new();
    let mut next = vec![tree.root()];
    while let Some(pe) = next.pop() {
        order.push(pe);
        next.extend(tree.children(pe).iter().rev());
    }
    order
}

/// Returns the parents of all PEs, by PE index; `None` for the root and for absent PEs.
pub fn parents(tree: &Tree) -> Vec<Option<u32>> {
    let parent = |pe| tree.parent(pe).map(|parent: PeId| parent.0);
    tree.ids().map(parent).collect()
}

/// Returns each PE in the order of the drawing, with the text that is drawn before it.
pub fn branches<'a>(children: impl Fn(PeId) -> &'a [PeId]) -> Vec<(PeId, String)> {
    let mut drawn = Vec::new();
    // PEs to draw, the next one last, each with the text before its children.
    let mut waiting: Vec<(PeId, String, &str)> = vec![(PeId::ROOT, "  ".to_owned(), "")];
    while let Some((pe, before, branch)) = waiting.pop() {
        drawn.push((pe, format!("{before}{branch}")));
        let below = match branch {
            "" => before,
            "├─ " => before + "│  ",
            _ => before + "   ",
        };
        for (i, &child) in children(pe).iter().rev().enumerate() {
            let branch = if i == 0 { "└─ " } else { "├─ " };
            waiting.push((child, below.clone(), branch));
        }
    }
    drawn
}

fn summary(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    let figures = TreeFigures::of(&topology.tree);
    let pes = topology.tree.len();
    let leaves = counted(figures.leaves() as u64, "leaf", "leaves");
    writeln!(out, "  PEs         {pes}, {leaves}")?;
    writeln!(out, "  depth       {}", figures.depth)?;
    write!(out, "  children    at most {}", figures.max_degree())?;
    let by_children = figures.pes_by_children.iter().enumerate();
    let mut some = by_children.filter(|(_, pes)| **pes > 0);
    for (i, (children, pes)) in some.by_ref().take(MAX_NAMED).enumerate() {
        match i {
            // Every tree has leaves.
            0 => write!(out, " (none: {}", counted(*pes as u64, "PE", "PEs"))?,
            _ => write!(out, ", {children}: {pes}")?,
        }
    }
    let more: usize = some.map(|(_, pes)| pes).sum();
    if more > 0 {
        write!(out, ", more: {more}")?;
    }
    writeln!(out, ")")?;
    let steps = figures.broadcast_steps;
    write!(out, "  broadcast   B = {steps}")?;
    match topology.broadcast_bound {
        Some(bound) if bound == steps => writeln!(out, ", which no tree of this network beats"),
        Some(bound) => writeln!(out, "; no tree of this network has less than {bound}"),
        None => writeln!(out),
    }
}

pub struct TreeFigures {
    /// Number of edges between P0 and the farthest PE.
    pub depth: u32,
    pub pes_by_children: Vec<usize>,
    /// B: the number of steps in which a token reaches all PEs if a PE sends it to one neighbour
    /// per step.
    pub broadcast_steps: u64,
}

impl TreeFigures {
    pub fn of(tree: &Tree) -> TreeFigures {
        let mut pes_by_children = vec![0];
        for pe in tree.pes() {
            let children = tree.children(pe).len();
            if children >= pes_by_children.len() {
                pes_by_children.resize(children + 1, 0);
            }
            pes_by_children[children] += 1;
        }
        TreeFigures {
            depth: tree.pes().map(|pe| tree.depth(pe)).max().unwrap_or(0),
            pes_by_children,
            broadcast_steps: tree.token_broadcast().steps(),
        }
    }

    /// Returns the number of PEs without children.
    pub fn leaves(&self) -> usize {
        self.pes_by_children[0]
    }

    /// Returns the largest number of children of a PE: the maximum of d_i.
    pub fn max_degree(&self) -> usize {
        self.pes_by_children.len() - 1
    }
}
