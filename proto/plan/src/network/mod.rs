//! Networks that are not trees, and the trees that span them.
//!
//! A [`Network`] is an undirected graph on the nodes 0, 1, 2, ...; like a [`Tree`] it is checked once,
//! when it is created, and never changes. A [`NetworkSpec`] is its name; [`bfs`] and [`broadcast`]
//! compute a [`Tree`] from it. Messages, lengths and schedules are elsewhere, nothing here reads a file,
//! and no function is recursive.
//!
//! [`Tree`]: flitcast_proto::Tree
//!
//! The graph is in compressed sparse row format: the sorted neighbours of all nodes in one array,
//! four bytes for each end of an edge.

pub mod cover;
mod exact;
mod grid;
mod harutyunyan_shao;
pub(crate) mod matching;
mod spanning;
mod spec;

pub use grid::Grid;
pub use spanning::{Spanning, SpanningError, bfs, broadcast, broadcast_lower_bound};
pub use spec::{NetworkSpec, NetworkSpecError};

use std::ops::Range;

use flitcast_proto::tree::MAX_PES;

/// Maximum number of edges of a network.
///
/// It limits the memory that a wrong number on a command line can reserve: an edge takes 8 bytes
/// while the network exists and 16 more while it is created, so at most 384 MiB. All grids of
/// [`MAX_PES`] nodes fit: they have fewer than 14 million edges.
pub const MAX_EDGES: usize = 1 << 24;

/// An undirected graph on the nodes 0 to `len() - 1`, without loops or double edges. It may be
/// disconnected.
#[derive(Clone, Debug)]
pub struct Network {
    /// Neighbours of node 0 in increasing order, those of node 1, and so on: each edge twice.
    neighbours: Vec<u32>,
    /// Index in `neighbours` of each node's first neighbour, and at the end the length.
    starts: Vec<u32>,
}

/// A fault of a set of edges, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NetworkError(String);

impl Network {
    /// Creates a network of `nodes` nodes with these edges, in any order. An edge that occurs
    /// twice, or in both directions, is one edge, but counts twice against [`MAX_EDGES`], which
    /// limits memory.
    ///
    /// # Errors
    ///
    /// Returns the first fault.
    pub fn from_edges(
        nodes: usize,
        edges: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Network, NetworkError> {
        bounded(nodes as u128, 0)?;
        let last = (nodes - 1) as u32;
        let mut both_ways: Vec<(u32, u32)> = Vec::new();
        for (given, (a, b)) in (1..).zip(edges) {
            bounded(nodes as u128, given)?;
            if a == b {
                return Err(NetworkError(format!(
                    "edge {a} {a} is a loop: it connects node {a} to itself"
                )));
            }
            if a.max(b) > last {
                return Err(NetworkError(format!(
                    "edge {a} {b}: there is no node {} (the last one is {last})",
                    a.max(b)
                )));
            }
            both_ways.extend([(a, b), (b, a)]);
        }
        both_ways.sort_unstable();
        both_ways.dedup();
        let mut starts = vec![0; nodes + 1];
        for (from, _) in &both_ways {
            starts[*from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let neighbours = both_ways.into_iter().map(|(_, to)| to).collect();
        Ok(Network { neighbours, starts })
    }

    /// Returns the number of nodes: at least 1, at most [`MAX_PES`].
    #[allow(clippy::len_without_is_empty)] // It never is.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns the number of edges.
    pub fn edges(&self) -> usize {
        self.neighbours.len() / 2
    }

    /// Returns the two ends of each edge, the smaller number first.
    pub fn pairs(&self) -> impl Iterator<Item = [u32; 2]> {
        (0..self.len() as u32).flat_map(move |node| {
            let others = self.neighbours(node).iter();
            let others = others.filter(move |other| node < **other);
            others.map(move |other| [node, *other])
        })
    }

    /// Returns whether any two nodes are neighbours.
    pub fn is_complete(&self) -> bool {
        let nodes = self.len();
        self.edges() == nodes * (nodes - 1) / 2
    }

    /// Returns whether the network has this node; for numbers from outside.
    pub fn contains(&self, node: u32) -> bool {
        (node as usize) < self.len()
    }

    /// Returns the neighbours of a node in increasing order.
    pub fn neighbours(&self, node: u32) -> &[u32] {
        &self.neighbours[self.places(node)]
    }

    /// Returns the places of a node's neighbours among those of all nodes.
    fn places(&self, node: u32) -> Range<usize> {
        let [start, end] = [node, node + 1].map(|node| self.starts[node as usize] as usize);
        start..end
    }
}

/// Checks the size of a network before memory is reserved.
fn bounded(nodes: u128, edges: u128) -> Result<(), NetworkError> {
    Err(NetworkError(match (nodes, edges) {
        (0, _) => "the network has no node: it needs at least node 0".to_owned(),
        _ if nodes > MAX_PES as u128 => {
            format!("the network has {nodes} nodes, more than the {MAX_PES} that a tree may have")
        }
        _ if edges > MAX_EDGES as u128 => format!(
            "the network has {edges} edges, more than the {MAX_EDGES} that are allowed to keep it within 400 MB of memory"
        ),
        _ => return Ok(()),
    }))
}

#[cfg(test)]
mod tests;
