//! Networks that are no trees, and the trees that span them.
//!
//! A [`Network`] is an undirected graph on the nodes 0, 1, 2, ...; like a
//! [`Tree`](crate::Tree) it is checked once, when it is made, and never changes. A
//! [`NetworkSpec`] is its name; [`bfs`] and [`broadcast`] make a [`Tree`](crate::Tree)
//! of it, which is all that the rest of this crate ever sees: messages, lengths and
//! schedules do not live here, and nothing here reads a file or recurses.
//!
//! The graph is a petgraph [`Csr`]: sorted rows of neighbours in one array, four
//! bytes for each end of an edge, walked in place. petgraph also walks it
//! ([`petgraph::visit::Bfs`]). Its matchings are for general graphs without weights
//! and its shortest paths keep hash maps whose order differs from run to run, so
//! the matching in `rounds` is ours; of petgraph we use nothing that hashes.

pub mod cover;
mod exact;
mod rounds;
mod spanning;
mod spec;

pub use spanning::{Spanning, SpanningError, bfs, broadcast, broadcast_lower_bound};
pub use spec::{NetworkSpec, NetworkSpecError};

use petgraph::Directed;
use petgraph::csr::Csr;

use crate::tree::MAX_PES;

/// The most edges that a network may have.
///
/// It bounds what a wrong number on a command line can make us reserve: an edge
/// costs 8 bytes for as long as the network is there and 16 more while it is made,
/// so 384 MiB at most. It leaves room for every network of [`MAX_PES`] nodes that we
/// have a name for (`hypercube:20` has 10 million edges), the complete one excepted.
pub const MAX_EDGES: usize = 1 << 24;

/// An undirected graph on the nodes 0 to `len() - 1`, without loops or double
/// edges. It need not be connected.
#[derive(Clone, Debug)]
pub struct Network {
    /// Each edge once in each direction.
    graph: Csr<(), (), Directed, u32>,
}

/// Why edges do not make a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkFault {
    /// Not even node 0.
    #[error("the network has no node: it needs at least node 0")]
    NoNodes,
    /// More than [`MAX_PES`].
    #[error("the network has {nodes} nodes, more than the {MAX_PES} that a tree may have")]
    TooManyNodes {
        /// How many there are.
        nodes: u128,
    },
    /// More than [`MAX_EDGES`].
    #[error(
        "the network has {edges} edges, more than the {MAX_EDGES} that are allowed to keep it within 400 MB of memory"
    )]
    TooManyEdges {
        /// How many there are.
        edges: u128,
    },
    /// An edge to a node that is not there.
    #[error("edge {a} {b}: there is no node {node} (the last one is {last})")]
    UnknownNode {
        /// One end.
        a: u32,
        /// The other.
        b: u32,
        /// The one that is not there.
        node: u32,
        /// The node with the greatest number.
        last: u32,
    },
    /// An edge from a node to itself.
    #[error("edge {node} {node} is a loop: it connects node {node} to itself")]
    Loop {
        /// The node.
        node: u32,
    },
    /// A [`NetworkSpec::Edges`], which is not for this crate to read.
    #[error("the network is in a file ({path}), which must be read first")]
    InFile {
        /// The file.
        path: String,
    },
}

impl Network {
    /// Makes a network of `nodes` nodes with these edges, in any order; an edge that
    /// comes twice, or in both directions, is one (but counts twice against
    /// [`MAX_EDGES`], which bounds the memory that this takes).
    ///
    /// # Errors
    ///
    /// The first thing that is wrong.
    pub fn from_edges(
        nodes: usize,
        edges: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Network, NetworkFault> {
        bounded(nodes as u128, 0)?;
        let last = (nodes - 1) as u32;
        let mut both_ways: Vec<(u32, u32)> = Vec::new();
        for (given, (a, b)) in (1..).zip(edges) {
            bounded(nodes as u128, given)?;
            if a == b {
                return Err(NetworkFault::Loop { node: a });
            }
            if a.max(b) > last {
                let node = a.max(b);
                return Err(NetworkFault::UnknownNode { a, b, node, last });
            }
            both_ways.extend([(a, b), (b, a)]);
        }
        both_ways.sort_unstable();
        both_ways.dedup();
        let mut graph = match Csr::from_sorted_edges(&both_ways) {
            Ok(graph) => graph,
            Err(unsorted) => unreachable!("sorted just above: {unsorted:?}"),
        };
        for _ in graph.node_count()..nodes {
            graph.add_node(());
        }
        Ok(Network { graph })
    }

    /// How many nodes there are: at least 1, at most [`MAX_PES`].
    #[allow(clippy::len_without_is_empty)] // It never is.
    pub fn len(&self) -> usize {
        self.graph.node_count()
    }

    /// How many edges there are, each counted once.
    pub fn edges(&self) -> usize {
        self.graph.edge_count() / 2
    }

    /// The two ends of each edge, the smaller number first.
    pub fn pairs(&self) -> impl Iterator<Item = [u32; 2]> {
        (0..self.len() as u32).flat_map(move |node| {
            let others = self.neighbours(node).iter();
            let others = others.filter(move |other| node < **other);
            others.map(move |other| [node, *other])
        })
    }

    /// Whether all are neighbours.
    pub fn is_complete(&self) -> bool {
        let nodes = self.len();
        self.edges() == nodes * (nodes - 1) / 2
    }

    /// Whether the network has such a node: for numbers that come from outside.
    pub fn contains(&self, node: u32) -> bool {
        (node as usize) < self.len()
    }

    /// The neighbours of a node of this network, in increasing order.
    pub fn neighbours(&self, node: u32) -> &[u32] {
        self.graph.neighbors_slice(node)
    }
}

/// Refuses networks of a size that they may not have, before memory is reserved.
fn bounded(nodes: u128, edges: u128) -> Result<(), NetworkFault> {
    match (nodes, edges) {
        (0, _) => Err(NetworkFault::NoNodes),
        _ if nodes > MAX_PES as u128 => Err(NetworkFault::TooManyNodes { nodes }),
        _ if edges > MAX_EDGES as u128 => Err(NetworkFault::TooManyEdges { edges }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
