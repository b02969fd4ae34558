//! Trees that span a network: breadth-first trees, and trees for fast broadcasts.
//!
//! See "Porting to General Networks" in the paper: in a scatter every message should take a
//! shortest path, so the tree is breadth-first. A gather with single ports synchronises by a
//! broadcast, so its tree is near a minimum broadcast tree. `exact` and `harutyunyan_shao` search for trees;
//! this module chooses among them.

use std::collections::VecDeque;

use flitcast_proto::{PeId, Tree};

use super::{Network, exact, harutyunyan_shao};

/// A tree that spans a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spanning {
    /// The tree; each of its edges is an edge of the network.
    pub tree: Tree,
    /// Network node of each PE, by PE index: P0 is on the root, the other PEs on the other nodes in
    /// increasing order.
    pub nodes: Vec<u32>,
}

/// The reason why no tree spans a network from a root.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpanningError {
    /// The root is not a node of the network.
    #[error("root {root}: there is no such node (the last one is {last})")]
    NoSuchRoot {
        root: u32,
        /// Largest number of a node.
        last: u32,
    },
    /// The network is not connected.
    #[error("the network is not connected: {}", cut(*root, nodes, *count))]
    Unreachable {
        root: u32,
        /// The first few of the nodes that cannot be reached from it.
        nodes: Vec<u32>,
        /// Total number of these nodes.
        count: usize,
    },
}

/// Maximum number of unreachable nodes that a message names.
const NAMED: usize = 8;

/// Names unreachable nodes: `nodes 5, 6 and 7 more cannot be reached from node 0`.
fn cut(root: u32, nodes: &[u32], count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    let names: Vec<String> = nodes.iter().map(u32::to_string).collect();
    let more = match count - nodes.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let names = names.join(", ");
    format!("node{plural} {names}{more} cannot be reached from node {root}")
}

/// Returns the breadth-first tree: every node is as near to the root as possible, and its parent is
/// its lowest-numbered neighbour that is one step nearer.
pub fn bfs(network: &Network, root: u32) -> Result<Spanning, SpanningError> {
    let depths = depths(network, root)?;
    Ok(Spanning::new(root, &nearest_parents(network, &depths)))
}

/// Returns a tree over which a token spreads fast, one neighbour per step: its
/// [`steps`](flitcast_proto::tree::TokenBroadcast::steps) are few.
///
/// It is a *minimum* broadcast tree for networks of up to 16 nodes (`exact`), and whenever
/// [`broadcast_lower_bound`] is met, which is known at once. For larger networks, it is the best
/// tree that the round heuristic of Harutyunyan and Shao found (`harutyunyan_shao`); for up to 64 nodes, a
/// complete search with bounded effort may improve it. It never takes more steps than the
/// breadth-first tree. The same network gives the same tree on every machine.
pub fn broadcast(network: &Network, root: u32) -> Result<Spanning, SpanningError> {
    let depths = depths(network, root)?;
    let bound = lower_bound(&depths);
    let mut best = Spanning::new(root, &nearest_parents(network, &depths));
    if network.edges() + 1 == network.len() {
        return Ok(best); // There is no other.
    }
    if best.steps() > bound {
        let mut found = None;
        harutyunyan_shao::search(network, root, |parents| {
            let spanning = Spanning::new(root, parents);
            let steps = spanning.steps();
            if found.as_ref().map_or(best.steps(), Spanning::steps) > steps {
                found = Some(spanning);
            }
            steps <= bound
        });
        best = found.unwrap_or(best);
    }
    if best.steps() > bound
        && let Some(parents) = exact::search(network, root, bound, best.steps())
    {
        best = Spanning::new(root, &parents);
    }
    Ok(best)
}

/// Returns a lower bound for the steps of a broadcast from `root` over any tree.
///
/// A node that the token reaches by step t over h links was called by a sequence of h of those t
/// steps, and no other node by the same sequence. So after t steps at most the sum over h >= d of
/// binomial(t, h) nodes at distance d or more have the token. For d = 0 this is 2^t, and for the
/// farthest node t >= d. The bound also includes (after Fraigniaud and Lazard, *Methods and
/// problems of communication in usual networks*, 1994) that two farthest nodes take one step more
/// than one.
pub fn broadcast_lower_bound(network: &Network, root: u32) -> Result<u64, SpanningError> {
    Ok(lower_bound(&depths(network, root)?))
}

impl Spanning {
    /// Creates the tree in which the parent of each node but the root is `parents[node]`; the
    /// root's entry is the root itself.
    pub(super) fn new(root: u32, parents: &[u32]) -> Spanning {
        let others = (0..parents.len() as u32).filter(|&node| node != root);
        let nodes: Vec<u32> = std::iter::once(root).chain(others).collect();
        let pe_parents = nodes.iter().map(|&node| {
            let parent = parents[node as usize];
            (node != root).then(|| pe_on(parent, root))
        });
        let tree = Tree::from_parents(pe_parents.collect()).unwrap_or_else(|faults| {
            unreachable!("the parents were found from the root on: {faults}")
        });
        Spanning { tree, nodes }
    }

    fn steps(&self) -> u64 {
        self.tree.token_broadcast().steps()
    }
}

fn pe_on(node: u32, root: u32) -> PeId {
    match node == root {
        true => PeId::ROOT,
        false => PeId(node + u32::from(node < root)),
    }
}

/// Returns the distance of each node from the root.
pub(super) fn depths(network: &Network, root: u32) -> Result<Vec<u32>, SpanningError> {
    const NEVER: u32 = u32::MAX;
    if !network.contains(root) {
        let last = (network.len() - 1) as u32;
        return Err(SpanningError::NoSuchRoot { root, last });
    }
    let mut depths = vec![NEVER; network.len()];
    depths[root as usize] = 0;
    let mut visited = VecDeque::from([root]);
    while let Some(node) = visited.pop_front() {
        for &next in network.neighbours(node) {
            if depths[next as usize] == NEVER {
                depths[next as usize] = depths[node as usize] + 1;
                visited.push_back(next);
            }
        }
    }
    let unreached = (0..network.len() as u32).filter(|&node| depths[node as usize] == NEVER);
    let nodes: Vec<u32> = unreached.clone().take(NAMED).collect();
    match nodes.is_empty() {
        true => Ok(depths),
        false => Err(SpanningError::Unreachable {
            root,
            nodes,
            count: unreached.count(),
        }),
    }
}

/// Adds the parents of all nodes that can be reached from `from`, breadth first, over the arcs to the
/// `next` nodes of each. A node that has a parent is not visited.
pub(super) fn breadth_first<N: IntoIterator<Item = u32>>(
    parents: &mut [Option<u32>],
    from: u32,
    next: impl Fn(u32) -> N,
) {
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        for other in next(node) {
            let parent = &mut parents[other as usize];
            if parent.is_none() {
                *parent = Some(node);
                queue.push_back(other);
            }
        }
    }
}

/// Returns each node's lowest-numbered neighbour that is nearer; for the root, the root itself.
fn nearest_parents(network: &Network, depths: &[u32]) -> Vec<u32> {
    let parent = |node: u32| {
        let mut neighbours = network.neighbours(node).iter().copied();
        let is_nearer = |n: &u32| depths[*n as usize] < depths[node as usize];
        neighbours.find(is_nearer).unwrap_or(node)
    };
    (0..network.len() as u32).map(parent).collect()
}

/// Computes the bound of [`broadcast_lower_bound`].
fn lower_bound(depths: &[u32]) -> u64 {
    let farthest = depths.iter().copied().max().unwrap_or(0) as usize;
    let mut beyond = vec![0u64; farthest + 1];
    for &depth in depths {
        beyond[depth as usize] += 1;
    }
    for depth in (0..farthest).rev() {
        beyond[depth] += beyond[depth + 1];
    }
    let permits = |steps: &u64| {
        exact::reached(*steps)
            .zip(&beyond)
            .all(|(reached, nodes)| reached >= *nodes)
    };
    (farthest as u64..).find(permits).unwrap_or(u64::MAX)
}
