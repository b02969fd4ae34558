//! Covers of networks with a rule: parents follow from coordinates relative to the root.

use super::Parents;
use crate::network::NetworkSpec;
use crate::network::spanning::breadth_first;

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

/// Coordinates in a grid; dimension 0 changes slowest.
struct Grid<'a> {
    sides: &'a [u32],
    root: Vec<u32>,
}

impl<'a> Grid<'a> {
    fn of(sides: &'a [u32], root: u32) -> Grid<'a> {
        let root = place(sides, root);
        Grid { sides, root }
    }

    /// Returns the dimensions in which nodes have neighbours.
    fn dimensions(&self) -> Vec<usize> {
        let all = 0..self.sides.len();
        all.filter(|dimension| self.sides[*dimension] > 1).collect()
    }

    /// Returns the node at a distance of one step, with wrap-around.
    fn beside(&self, place: &[u32], dimension: usize, step: i64) -> u32 {
        let mut node = 0;
        for (at, side) in self.sides.iter().enumerate() {
            let step = if at == dimension { step } else { 0 };
            let moved = (i64::from(place[at]) + step).rem_euclid(i64::from(*side));
            node = node * side + moved as u32;
        }
        node
    }
}

/// Returns the coordinates of a node.
fn place(sides: &[u32], mut node: u32) -> Vec<u32> {
    let mut place = vec![0; sides.len()];
    for (at, side) in place.iter_mut().zip(sides).rev() {
        *at = node % side;
        node /= side;
    }
    place
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
fn tree_of(nodes: u32, root: u32, parent: impl Fn(u32) -> u32) -> Vec<u32> {
    let parent = |node| if node == root { root } else { parent(node) };
    (0..nodes).map(parent).collect()
}

/// Returns two trees for each dimension, one for each direction around it (a new rule). On the path
/// from a node to the root, the first step leaves the root's level in the dimension; then the path
/// returns to that level in all other dimensions, and last in the dimension itself.
fn torus(sides: &[u32], root: u32) -> Parents {
    let grid = Grid::of(sides, root);
    let dimensions = grid.dimensions();
    let trees = (0..dimensions.len()).flat_map(|j| [(j, 1), (j, -1)]);
    let tree = |(j, way): (usize, i64)| {
        let parent = |node: u32| {
            let at = place(sides, node);
            let is_off = |dimension: usize| at[dimension] != grid.root[dimension];
            match is_off(dimensions[j]) {
                false => grid.beside(&at, dimensions[j], way),
                true => grid.beside(&at, before(&dimensions, j, is_off), -way),
            }
        };
        tree_of(grid.sides.iter().product(), root, parent)
    };
    trees.map(tree).collect()
}

/// Returns a tree for each dimension (a new rule), which leaves the root by both of its ports in
/// that dimension.
fn mesh(sides: &[u32], root: u32) -> Parents {
    let grid = Grid::of(sides, root);
    let dimensions = grid.dimensions();
    let tree = |j: usize| {
        let own = dimensions[j];
        let parent = |node: u32| {
            let at = place(sides, node);
            let away =
                |dimension: usize| i64::from(at[dimension]) - i64::from(grid.root[dimension]);
            if away(own) != 0 {
                let nearer = before(&dimensions, j, |dimension| away(dimension) != 0);
                return grid.beside(&at, nearer, -away(nearer).signum());
            }
            let steps: i64 = dimensions.iter().map(|dimension| away(*dimension)).sum();
            let is_even = steps % 2 == 0;
            let (has_below, has_above) = (grid.root[own] > 0, grid.root[own] + 1 < sides[own]);
            let goes_up = !has_below || has_above && is_even;
            grid.beside(&at, own, if goes_up { 1 } else { -1 })
        };
        tree_of(grid.sides.iter().product(), root, parent)
    };
    (0..dimensions.len()).map(tree).collect()
}

/// Returns a tree for each dimension (Johnsson and Ho, 1989); dimension 0 is the highest bit.
fn hypercube(dimensions: u32, root: u32) -> Parents {
    let all: Vec<usize> = (0..dimensions as usize).collect();
    let bit = |dimension: usize| 1u32 << (all.len() - 1 - dimension);
    let tree = |j: usize| {
        let parent = |node: u32| {
            let is_off = |dimension: usize| (node ^ root) & bit(dimension) != 0;
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
