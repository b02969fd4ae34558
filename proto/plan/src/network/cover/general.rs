//! Covers of any network by Lovász's proof of Edmonds' theorem (1976).

use super::{CoverError, Parents};
use crate::network::Network;

/// Maximum number of edges of a network that is searched in a few seconds.
const MOST_EDGES: usize = 1_000;

/// The arcs of a network, some of which are taken.
struct Arcs<'a> {
    /// An arc is the place of its head among the neighbours of all nodes.
    network: &'a Network,
    reversed: Vec<usize>,
    is_taken: Vec<bool>,
}

impl Arcs<'_> {
    fn of(network: &Network) -> Arcs<'_> {
        let nodes = 0..network.len() as u32;
        let reversed = nodes.flat_map(|node| {
            let others = network.neighbours(node).iter();
            others.map(move |other| {
                let back = network.neighbours(*other).partition_point(|to| *to < node);
                network.places(*other).start + back
            })
        });
        Arcs {
            reversed: reversed.collect(),
            is_taken: vec![false; 2 * network.edges()],
            network,
        }
    }

    fn head(&self, arc: usize) -> u32 {
        self.network.neighbours[arc]
    }

    /// Returns the number of arc-disjoint paths from the nodes `from` to `to` without taken arcs,
    /// counted up to `most` (Ford and Fulkerson).
    fn ways(&self, from: &[u32], to: u32, most: usize) -> usize {
        let mut is_used = vec![false; self.is_taken.len()];
        let is_free = |is_used: &[bool], arc: usize| {
            // On an arc that is used in the opposite direction, two paths are exchanged.
            !is_used[arc] && !self.is_taken[arc] || is_used[self.reversed[arc]]
        };
        for found in 0..most {
            // The arc over which each node was reached first, by node.
            let mut reached: Vec<Option<usize>> = vec![None; self.network.len()];
            let mut waiting = from.to_vec();
            let mut next = 0;
            while next < waiting.len() && reached[to as usize].is_none() {
                for arc in self.network.places(waiting[next]) {
                    let head = self.head(arc);
                    let is_new = reached[head as usize].is_none() && !from.contains(&head);
                    if is_new && is_free(&is_used, arc) {
                        reached[head as usize] = Some(arc);
                        waiting.push(head);
                    }
                }
                next += 1;
            }
            if reached[to as usize].is_none() {
                return found;
            }
            let mut node = to;
            while let Some(arc) = reached[node as usize] {
                match is_used[self.reversed[arc]] {
                    true => is_used[self.reversed[arc]] = false,
                    false => is_used[arc] = true,
                }
                node = self.head(self.reversed[arc]);
            }
        }
        most
    }
}

/// Returns the number of arc-disjoint paths from the root to each node; 0 for the root itself.
pub fn ways_to_all(network: &Network, root: u32) -> Vec<usize> {
    let arcs = Arcs::of(network);
    let nodes = 0..network.len() as u32;
    let ways = nodes.map(|node| match node == root {
        true => 0,
        false => arcs.ways(&[root], node, network.neighbours(node).len()),
    });
    ways.collect()
}

/// Returns the parents in the maximum number of trees. Each tree grows arc by arc such that enough
/// paths to its newest node remain for all trees that follow; such an arc always exists.
pub(super) fn parents(network: &Network, root: u32) -> Result<Parents, CoverError> {
    let edges = network.edges();
    if edges > MOST_EDGES {
        return Err(CoverError(format!(
            "a cover of a network without a rule of its own is computed for at most {MOST_EDGES} \
             edges, and this one has {edges}"
        )));
    }
    let ways = ways_to_all(network, root);
    let others = (0..).zip(ways).filter(|(node, _)| *node != root);
    let count = others.map(|(_, ways)| ways).min().unwrap_or(1);
    let mut arcs = Arcs::of(network);
    let mut trees = Parents::new();
    for left in (0..count).rev() {
        let mut parents: Vec<Option<u32>> = vec![None; network.len()];
        let mut joined = vec![root];
        let mut next = 0;
        // An arc that is refused once stays refused for this tree, because the number of paths only
        // decreases.
        while let Some(&tail) = joined.get(next) {
            next += 1;
            for arc in network.places(tail) {
                let head = arcs.head(arc);
                if head == root || parents[head as usize].is_some() || arcs.is_taken[arc] {
                    continue;
                }
                arcs.is_taken[arc] = true;
                match arcs.ways(&[root, tail], head, left) == left {
                    true => {
                        parents[head as usize] = Some(tail);
                        joined.push(head);
                    }
                    false => arcs.is_taken[arc] = false,
                }
            }
        }
        let parents = parents.into_iter();
        trees.push(parents.map(|parent| parent.unwrap_or(root)).collect());
    }
    Ok(trees)
}
