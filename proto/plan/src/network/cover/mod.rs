//! Covers: several trees that span a network from one root such that no arc is in two of them
//! (paper 000, section IV). Links are full duplex, so an edge is two arcs.
//!
//! The maximum number of trees is the minimum, over all nodes, of the number of arc-disjoint paths
//! from the root (Edmonds). For tori, meshes and de Bruijn networks the trees follow new rules
//! (parents follow from coordinates relative to the root), for other networks from Lovász's proof of Edmonds'
//! theorem (1976).
//!
//! The paper's second technique permits trees that share edges. Trees of a cover do, in opposite
//! directions, which do not meet. Trees that share arcs as well are one for each port of the root
//! ([`tree_for_each_port`]).

use flitcast_proto::Tree;

use super::spanning::{Spanning, SpanningError, breadth_first, depths};
use super::{Grid, Network, NetworkSpec};

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
    let parents = match spec.and_then(|spec| by_rule(spec, root)) {
        Some(parents) => parents,
        None => by_search(network, root)?,
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

/// Returns the trees by the network's rule, if it has one.
fn by_rule(spec: &NetworkSpec, root: u32) -> Option<Parents> {
    let trees = match (spec, spec.grid()) {
        (_, Some(grid)) if !grid.closed => mesh(&grid, root),
        (_, Some(grid)) if !grid.sides.contains(&2) => torus(&grid, root),
        // With a larger base there are more than two trees, which the search finds.
        (NetworkSpec::DeBruijn { base: 2, digits }, _) if *digits > 1 => de_bruijn(*digits, root),
        _ => return None,
    };
    Some(trees).filter(|trees| !trees.is_empty())
}

/// Returns the dimensions in which nodes have neighbours.
fn dimensions(grid: &Grid) -> Vec<usize> {
    let all = 0..grid.sides.len();
    all.filter(|dimension| grid.sides[*dimension] > 1).collect()
}

/// Returns the last dimension before `dimensions[j]`, cyclically, in which the node differs from
/// the root; `dimensions[j]` itself is checked last.
fn before(dimensions: &[usize], j: usize, is_off: impl Fn(usize) -> bool) -> usize {
    let count = dimensions.len();
    let back = (1..=count).map(|back| dimensions[(j + count - back) % count]);
    let mut off = back.filter(|dimension| is_off(*dimension));
    off.next().unwrap_or(dimensions[j])
}

/// Returns the parents of all nodes but the root, which is its own.
fn tree_of(nodes: usize, root: u32, parent: impl Fn(usize) -> usize) -> Vec<u32> {
    let parent = |node| match node == root as usize {
        true => root,
        false => parent(node) as u32,
    };
    (0..nodes).map(parent).collect()
}

/// Returns two trees for each dimension, one for each direction around it (a new rule). On the path
/// from a node to the root, the first step leaves the root's level in the dimension; then the path
/// returns to that level in all other dimensions, and last in the dimension itself.
fn torus(grid: &Grid, root: u32) -> Parents {
    let dimensions = dimensions(grid);
    let trees = (0..dimensions.len()).flat_map(|j| [(j, 1), (j, -1)]);
    let tree = |(j, way): (usize, i64)| {
        let parent = |node: usize| {
            let is_off = |dimension: usize| {
                grid.coordinate(node, dimension) != grid.coordinate(root as usize, dimension)
            };
            match is_off(dimensions[j]) {
                false => grid.along(node, dimensions[j], way),
                true => grid.along(node, before(&dimensions, j, is_off), -way),
            }
        };
        tree_of(grid.pes(), root, parent)
    };
    trees.map(tree).collect()
}

/// Returns a tree for each dimension (a new rule), which leaves the root by both of its ports in
/// that dimension. If all sides are 2, the trees are those of Johnsson and Ho (1989).
fn mesh(grid: &Grid, root: u32) -> Parents {
    let dimensions = dimensions(grid);
    let at_root = |dimension: usize| grid.coordinate(root as usize, dimension);
    let tree = |j: usize| {
        let own = dimensions[j];
        let parent = |node: usize| {
            let away = |dimension: usize| {
                grid.coordinate(node, dimension) as i64 - at_root(dimension) as i64
            };
            if away(own) != 0 {
                let nearer = before(&dimensions, j, |dimension| away(dimension) != 0);
                return grid.along(node, nearer, -away(nearer).signum());
            }
            let steps: i64 = dimensions.iter().map(|dimension| away(*dimension)).sum();
            let is_even = steps % 2 == 0;
            let (has_below, has_above) = (at_root(own) > 0, at_root(own) + 1 < grid.sides[own]);
            let is_upward = !has_below || has_above && is_even;
            grid.along(node, own, if is_upward { 1 } else { -1 })
        };
        tree_of(grid.pes(), root, parent)
    };
    (0..dimensions.len()).map(tree).collect()
}

/// Returns two breadth-first trees on the words of `digits` binary digits: one appends digits, the
/// other puts digits in front, without the first one's arcs (a new rule; paper 000 uses both
/// shifts, and does not mention that they can share arcs).
fn de_bruijn(digits: u32, root: u32) -> Parents {
    let nodes = 1u32 << digits;
    let append = |node: u32| [0, 1].map(|digit| node * 2 % nodes + digit);
    let put_in_front = |node: u32| [0, 1].map(|digit| node / 2 + digit * (nodes / 2));
    let start = || {
        let mut parents = vec![None; nodes as usize];
        parents[root as usize] = Some(root);
        parents
    };
    let mut appended = start();
    breadth_first(&mut appended, root, append);
    let (mut in_front, taken) = (start(), &appended);
    breadth_first(&mut in_front, root, |node| {
        let is_free = move |other: &u32| taken[*other as usize] != Some(node);
        put_in_front(node).into_iter().filter(is_free)
    });
    [appended, in_front]
        .map(|tree| tree.into_iter().flatten().collect())
        .into()
}

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
fn by_search(network: &Network, root: u32) -> Result<Parents, CoverError> {
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

#[cfg(test)]
mod tests;
