//! Covers of networks with a rule: parents follow from coordinates relative to the root.

use super::Parents;
use crate::network::spanning::breadth_first;
use crate::network::{Grid, NetworkSpec};

/// Returns the trees by the network's rule, if it has one.
pub(super) fn parents(spec: &NetworkSpec, root: u32) -> Option<Parents> {
    match spec {
        NetworkSpec::Ring { nodes } if *nodes > 2 => Some(torus(&[*nodes], root)),
        NetworkSpec::Torus { sides } if sides.iter().all(|side| *side != 2) => {
            Some(torus(sides, root)).filter(|trees| !trees.is_empty())
        }
        NetworkSpec::Mesh { sides } => Some(mesh(sides, root)).filter(|trees| !trees.is_empty()),
        NetworkSpec::Hypercube { dimensions } if *dimensions > 0 => {
            Some(hypercube(*dimensions, root))
        }
        // With a larger base there are more than two trees, which the search finds.
        NetworkSpec::DeBruijn { base: 2, digits } if *digits > 1 => Some(de_bruijn(*digits, root)),
        _ => None,
    }
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
fn torus(sides: &[u32], root: u32) -> Parents {
    let grid = Grid::of(sides, true);
    let dimensions = dimensions(&grid);
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
/// that dimension.
fn mesh(sides: &[u32], root: u32) -> Parents {
    let grid = Grid::of(sides, false);
    let dimensions = dimensions(&grid);
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
            let goes_up = !has_below || has_above && is_even;
            grid.along(node, own, if goes_up { 1 } else { -1 })
        };
        tree_of(grid.pes(), root, parent)
    };
    (0..dimensions.len()).map(tree).collect()
}

/// Returns a tree for each dimension (Johnsson and Ho, 1989); dimension 0 is the highest bit.
fn hypercube(dimensions: u32, root: u32) -> Parents {
    let all: Vec<usize> = (0..dimensions as usize).collect();
    let bit = |dimension: usize| 1usize << (all.len() - 1 - dimension);
    let tree = |j: usize| {
        let parent = |node: usize| {
            let is_off = |dimension: usize| (node ^ root as usize) & bit(dimension) != 0;
            match is_off(j) {
                false => node ^ bit(j),
                true => node ^ bit(before(&all, j, is_off)),
            }
        };
        tree_of(1 << dimensions, root, parent)
    };
    all.iter().copied().map(tree).collect()
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
