//! Covers: several trees that span a network from one root such that no arc is in two of them
//! (paper 000, section IV). Links are full duplex, so an edge is two arcs.
//!
//! The maximum number of trees is the minimum, over all nodes, of the number of arc-disjoint paths
//! from the root (Edmonds). For tori, meshes and de Bruijn networks the trees follow new rules
//! ([`rules`]), for other networks from Lovász's proof of Edmonds' theorem ([`general`]).
//!
//! The paper's second technique permits trees that share edges. Trees of a cover do, in opposite
//! directions, which do not meet. Trees that share arcs as well are one for each port of the root
//! ([`tree_for_each_port`]).

mod general;
mod rules;

use flitcast_proto::Tree;

use super::spanning::{Spanning, SpanningError, breadth_first, depths};
use super::{Network, NetworkSpec};

pub use general::ways_to_all;

/// Several trees of the same PEs: those of [`cover()`] share no arc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cover {
    /// Trees, at least one.
    pub trees: Vec<Tree>,
    /// Network node of each PE, by PE index: P0 is on the root, the other PEs on the other nodes in
    /// increasing order.
    pub nodes: Vec<u32>,
}

/// The reason why there is no cover, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CoverError(String);

impl From<SpanningError> for CoverError {
    fn from(error: SpanningError) -> CoverError {
        CoverError(error.to_string())
    }
}

/// The parent of each node in each tree; the root is its own parent.
type Parents = Vec<Vec<u32>>;

/// Computes a cover: by the rule of a named network, otherwise with the maximum number of trees.
///
/// # Errors
///
/// Returns an error if the root does not exist, if nodes cannot be reached from it, or if the
/// network is too large to search.
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
    // Every cover is checked; a violation would be a bug of this module.
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

/// Returns whether the trees use only arcs of the network, and none twice. Creating the trees
/// checks that they span the network.
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

/// Computes a tree for each neighbour of the root: over the edge to that neighbour, then breadth first
/// from it without the root. Each tree has its own port of the root; elsewhere trees share arcs.
///
/// # Errors
///
/// Returns an error if the root does not exist, or if a node cannot be reached through each neighbour.
pub fn tree_for_each_port(network: &Network, root: u32) -> Result<Cover, CoverError> {
    depths(network, root)?;
    let mut cover = Cover {
        trees: Vec::new(),
        nodes: vec![root],
    };
    if network.len() == 1 {
        let Spanning { tree, .. } = Spanning::new(root, &[root]);
        cover.trees.push(tree);
    }
    for &first in network.neighbours(root) {
        let mut parents = vec![None; network.len()];
        (parents[root as usize], parents[first as usize]) = (Some(root), Some(root));
        breadth_first(&mut parents, first, |node| {
            network.neighbours(node).iter().copied()
        });
        let reached: Option<Vec<u32>> = parents.into_iter().collect();
        let reached = reached.ok_or_else(|| {
            CoverError(format!(
                "without node {root}, node {first} does not reach all others, so there is no tree \
                 for each port of the root"
            ))
        })?;
        let Spanning { tree, nodes } = Spanning::new(root, &reached);
        cover.trees.push(tree);
        cover.nodes = nodes;
    }
    Ok(cover)
}

#[cfg(test)]
mod tests;
