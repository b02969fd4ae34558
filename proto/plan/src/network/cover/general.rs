//! Covers of any network by Lovász's proof of Edmonds' theorem (1976).

use super::{CoverError, Parents};
use crate::network::Network;

/// Maximum number of edges of a network that is searched in a few seconds.
const MOST_EDGES: usize = 1_000;

/// The arcs of a network, some of which are taken.
struct Arcs {
    /// Sender and receiver of each arc, sorted.
    ends: Vec<[u32; 2]>,
    /// Index of each node's first arc: the arcs from a node are `first[node]..first[node + 1]`.
    first: Vec<usize>,
    reversed: Vec<usize>,
    is_taken: Vec<bool>,
}

impl Arcs {
    fn of(network: &Network) -> Arcs {
        let nodes = 0..network.len() as u32;
        let mut first = vec![0];
        let mut ends = Vec::new();
        for node in nodes {
            ends.extend(network.neighbours(node).iter().map(|other| [node, *other]));
            first.push(ends.len());
        }
        let reversed = ends.iter().map(|[from, to]| {
            let out = first[*to as usize]..first[*to as usize + 1];
            out.start + ends[out].partition_point(|[_, other]| other < from)
        });
        Arcs {
            reversed: reversed.collect(),
            is_taken: vec![false; ends.len()],
            ends,
            first,
        }
    }

    fn out_of(&self, node: u32) -> std::ops::Range<usize> {
        self.first[node as usize]..self.first[node as usize + 1]
    }

    /// Returns the number of arc-disjoint paths from the nodes `from` to `to` without taken arcs,
    /// counted up to `most` (Ford and Fulkerson).
    fn ways(&self, from: &[u32], to: u32, most: usize) -> usize {
        let mut is_used = vec![false; self.ends.len()];
        let is_free = |is_used: &[bool], arc: usize| {
            // On an arc that is used in the opposite direction, two paths are exchanged.
            !is_used[arc] && !self.is_taken[arc] || is_used[self.reversed[arc]]
        };
        for found in 0..most {
            // The arc over which each node was reached first, by node.
            let mut reached: Vec<Option<usize>> = vec![None; self.first.len() - 1];
            let mut waiting = from.to_vec();
            let mut next = 0;
            while next < waiting.len() && reached[to as usize].is_none() {
                for arc in self.out_of(waiting[next]) {
                    let head = self.ends[arc][1];
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
                node = self.ends[arc][0];
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
            "a cover of a network without a rule of its own is worked out for at most {MOST_EDGES} \
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
            for arc in arcs.out_of(tail) {
                let head = arcs.ends[arc][1];
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
