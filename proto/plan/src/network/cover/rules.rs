//! Covers of networks with a rule: parents follow from coordinates relative to the root.

use super::Parents;
use crate::network::spanning::breadth_first;
use crate::network::{Grid, NetworkSpec};

/// Returns the trees by the network's rule, if it has one.
pub(super) fn parents(spec: &NetworkSpec, root: u32) -> Option<Parents> {
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
