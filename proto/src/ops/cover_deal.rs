//! How the messages of a scatter or a gather are dealt to the trees of a cover (ours). Each port of P0
//! belongs to one tree, and what is late is late at a port.

use std::cmp::Reverse;
use std::fmt;

use super::scatter::branches;
use crate::PeId;
use crate::network::cover::Cover;

/// How messages are dealt to the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deal {
    /// Whole, the longest first, each where it is through soonest.
    Whole,
    /// As many flits of each message to each tree.
    Striped,
    /// As whole, but flit by flit.
    Levelled,
}

impl Deal {
    /// All of them, those first that cut the least.
    pub const ALL: [Deal; 3] = [Deal::Whole, Deal::Striped, Deal::Levelled];
}

impl fmt::Display for Deal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Deal::Whole => "whole",
            Deal::Striped => "striped",
            Deal::Levelled => "levelled",
        })
    }
}

/// By tree, then by PE: the flits of its message on that tree. `flits[0]` is 0.
pub fn deal(cover: &Cover, flits: &[u64], how: Deal) -> Vec<Vec<u64>> {
    match how {
        Deal::Whole => whole(cover, flits),
        Deal::Striped => striped(cover, flits),
        Deal::Levelled => levelled(cover, flits),
    }
}

/// PEs with a message, the longest first.
fn by_length(flits: &[u64]) -> Vec<PeId> {
    let all = (0..flits.len() as u32).map(PeId);
    let mut nonnull: Vec<PeId> = all.filter(|pe| flits[pe.index()] > 0).collect();
    nonnull.sort_by_key(|pe| Reverse(flits[pe.index()]));
    nonnull
}

fn whole(cover: &Cover, flits: &[u64]) -> Vec<Vec<u64>> {
    let branches: Vec<Vec<PeId>> = cover.trees.iter().map(branches).collect();
    let mut dealt = vec![vec![0; flits.len()]; cover.trees.len()];
    // By tree and port, the flits for each depth.
    let mut ports: Vec<Vec<Vec<u64>>> = vec![vec![Vec::new(); flits.len()]; cover.trees.len()];
    for pe in by_length(flits) {
        let length = flits[pe.index()];
        let trees = cover.trees.iter().enumerate().map(|(at, tree)| {
            let depth = tree.depth(pe) as usize;
            let port = &ports[at][branches[at][pe.index()].index()];
            (last_step(port, depth, length), depth, at)
        });
        let Some((_, depth, at)) = trees.min() else {
            continue;
        };
        dealt[at][pe.index()] = length;
        let port = &mut ports[at][branches[at][pe.index()].index()];
        port.resize(port.len().max(depth + 1), 0);
        port[depth] += length;
    }
    dealt
}

/// The last arrival of what a port sends farthest first, with a message more.
fn last_step(by_depth: &[u64], depth: usize, flits: u64) -> u64 {
    let deepest = by_depth.len().max(depth + 1);
    let (mut sent, mut last) = (0, 0);
    for at in (1..deepest).rev() {
        let here = by_depth.get(at).copied().unwrap_or(0) + if at == depth { flits } else { 0 };
        sent += here;
        if here > 0 {
            last = last.max(sent + at as u64 - 1);
        }
    }
    last
}

/// What does not come out even goes to the trees by turns, from the one on that the PE's node has the
/// number of.
fn striped(cover: &Cover, flits: &[u64]) -> Vec<Vec<u64>> {
    let trees = cover.trees.len() as u64;
    let on_tree = |tree: u64| {
        let piece = |(node, length): (&u32, &u64)| {
            let turn = (tree + trees - u64::from(*node) % trees) % trees;
            length / trees + u64::from(turn < length % trees)
        };
        cover.nodes.iter().zip(flits).map(piece).collect()
    };
    (0..trees).map(on_tree).collect()
}

/// A flit goes to the tree on which it can come first: behind all that its port has, or behind those
/// of its message and as far as the PE is. Each that goes there makes it a step later, so flits fill
/// the trees up to a level.
fn levelled(cover: &Cover, flits: &[u64]) -> Vec<Vec<u64>> {
    let branches: Vec<Vec<PeId>> = cover.trees.iter().map(branches).collect();
    let mut dealt = vec![vec![0; flits.len()]; cover.trees.len()];
    let mut on_port = dealt.clone();
    for pe in by_length(flits) {
        let trees = cover.trees.iter().enumerate().map(|(at, tree)| {
            let depth = u64::from(tree.depth(pe));
            let port = on_port[at][branches[at][pe.index()].index()];
            (depth.max(port + 1), depth, at)
        });
        let mut trees: Vec<(u64, u64, usize)> = trees.collect();
        trees.sort_unstable();
        let mut left = flits[pe.index()];
        // The trees that are filled, and the step up to which they are.
        let (mut filled, mut level) = (1, trees[0].0);
        while let Some((next, ..)) = trees.get(filled) {
            let room = (next - level) * filled as u64;
            if room > left {
                break;
            }
            left -= room;
            level = *next;
            filled += 1;
        }
        let (full, rest) = (left / filled as u64, left % filled as u64);
        let mut filled = trees[..filled].to_vec();
        filled.sort_unstable_by_key(|(_, depth, at)| (*depth, *at));
        for (turn, (first, _, at)) in (0..).zip(filled) {
            let piece = level - first + full + u64::from(turn < rest);
            dealt[at][pe.index()] = piece;
            on_port[at][branches[at][pe.index()].index()] += piece;
        }
    }
    dealt
}
