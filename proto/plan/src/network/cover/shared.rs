//! Trees that share arcs (paper 000, section IV, the second technique): one for each port of the root.

use super::{Cover, CoverError};
use crate::network::Network;
use crate::network::spanning::{Spanning, breadth_first, depths};

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
