//! Covers: many trees at once that span a network from one root, so that no arc is in two of them
//! (paper 000, section IV). Links are full duplex, so an edge is two arcs.
//!
//! There can be as many trees as arc-disjoint ways lead from the root to whoever has the fewest
//! (Edmonds). Hypercubes have theirs by a rule of Johnsson and Ho; the rules for tori, meshes and de
//! Bruijn networks are ours ([`rules`]). For all others, Lovász's proof of Edmonds' theorem is
//! carried out ([`general`]).

mod general;
mod rules;

use crate::Tree;

use super::spanning::{Spanning, SpanningError, depths};
use super::{Network, NetworkSpec};

pub use general::ways_to_all;

/// Trees that share no arc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cover {
    /// The trees, at least one. They have the same PEs.
    pub trees: Vec<Tree>,
    /// The node that each PE stands on, by PE index: P0 on the root, the other PEs on the other
    /// nodes in increasing order.
    pub nodes: Vec<u32>,
}

/// Why there is no cover.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CoverError {
    /// No tree spans the network from there.
    #[error(transparent)]
    Spanning(#[from] SpanningError),
    /// Too much to work out.
    #[error(
        "a cover of a network without a rule of its own is worked out for at most {most} edges, \
         and this one has {edges}"
    )]
    TooLarge {
        /// How many edges the network has.
        edges: usize,
        /// How many it may have.
        most: usize,
    },
}

/// The parent of each node in each tree; of the root, itself.
type Parents = Vec<Vec<u32>>;

/// The most trees that a rule gives for a network that is known by name, or all that there can be.
///
/// # Errors
///
/// That there is no such root, nodes that cannot be reached from it, or a network too large to
/// search.
pub fn cover(
    network: &Network,
    spec: Option<&NetworkSpec>,
    root: u32,
) -> Result<Cover, CoverError> {
    depths(network, root)?;
    let parents = match spec.and_then(|spec| rules::parents(spec, root)) {
        Some(parents) => parents,
        None => general::parents(network, root)?,
    };
    // Every cover is checked before somebody goes by it: another one would be a bug of ours.
    assert!(
        is_cover(network, root, &parents),
        "the trees of a cover share an arc, or have one that is none of the network's"
    );
    let spanning = parents.iter().map(|parents| Spanning::new(root, parents));
    let spanning: Vec<Spanning> = spanning.collect();
    let nodes = spanning.first().map(|one| one.nodes.clone());
    Ok(Cover {
        nodes: nodes.unwrap_or_default(),
        trees: spanning.into_iter().map(|one| one.tree).collect(),
    })
}

/// Whether the trees use arcs of the network, and none twice. That they span it, making them shows.
fn is_cover(network: &Network, root: u32, trees: &Parents) -> bool {
    let arcs = trees.iter().flat_map(|tree| {
        let nodes = (0..tree.len() as u32).filter(|node| *node != root);
        nodes.map(|node| (tree[node as usize], node))
    });
    let mut arcs: Vec<(u32, u32)> = arcs.collect();
    let mut each = arcs.iter();
    let all_there = each.all(|(from, to)| network.neighbours(*from).contains(to));
    arcs.sort_unstable();
    all_there && arcs.windows(2).all(|pair| pair[0] != pair[1])
}

#[cfg(test)]
mod tests;
