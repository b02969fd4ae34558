//! Trees that share arcs (paper 000, section IV, the second technique): one for each port of the root.

use std::collections::VecDeque;

use super::{Cover, CoverError};
use crate::network::Network;
use crate::network::spanning::{Spanning, depths};

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
        let mut queue = VecDeque::from([first]);
        while let Some(node) = queue.pop_front() {
            for &next in network.neighbours(node) {
                let parent = &mut parents[next as usize];
                if parent.is_none() {
                    *parent = Some(node);
                    queue.push_back(next);
                }
            }
        }
        let reached: Option<Vec<u32>> = parents.into_iter().collect();
        let reached = reached.ok_or(CoverError::Apart { root, first })?;
        let Spanning { tree, nodes } = Spanning::new(root, &reached);
        cover.trees.push(tree);
        cover.nodes = nodes;
    }
    Ok(cover)
}
