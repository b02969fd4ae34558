//! Distribution of the messages of a scatter or a gather over the trees of a cover (a new method).
//! Each port of P0 belongs to one tree, and delays arise only at ports.

use std::cmp::Reverse;
use std::fmt;

use flitcast_proto::PeId;

use super::farthest_first::branches;
use crate::network::cover::Cover;

/// A distribution of messages over trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitPolicy {
    /// Whole messages, longest first, each on the tree where it arrives first.
    Whole,
    /// An equal number of flits of each message on each tree.
    Striped,
    /// Single flits, each on the tree where it arrives first.
    Levelled,
}

impl SplitPolicy {
    /// All distributions; those that split the fewest messages first.
    pub const ALL: [SplitPolicy; 3] = [
        SplitPolicy::Whole,
        SplitPolicy::Striped,
        SplitPolicy::Levelled,
    ];
}

impl fmt::Display for SplitPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SplitPolicy::Whole => "whole",
            SplitPolicy::Striped => "striped",
            SplitPolicy::Levelled => "levelled",
        })
    }
}

/// Returns for each tree and PE the flits of the PE's message on that tree. `flits[0]` is 0.
pub fn deal(cover: &Cover, flits: &[u64], how: SplitPolicy) -> Vec<Vec<u64>> {
    match how {
        SplitPolicy::Whole => whole(cover, flits),
        SplitPolicy::Striped => striped(cover, flits),
        SplitPolicy::Levelled => levelled(cover, flits),
    }
}

/// Returns the PEs with a message, longest message first.
fn by_length(flits: &[u64]) -> Vec<PeId> {
    let all = (0..flits.len() as u32).map(PeId);
    let mut nonnull: Vec<PeId> = all.filter(|pe| flits[pe.index()] > 0).collect();
    nonnull.sort_by_key(|pe| Reverse(flits[pe.index()]));
    nonnull
}

fn whole(cover: &Cover, flits: &[u64]) -> Vec<Vec<u64>> {
    let branches: Vec<Vec<PeId>> = cover.trees.iter().map(branches).collect();
    let mut dealt = vec![vec![0; flits.len()]; cover.trees.len()];
    // For each tree and port, the flits for each depth.
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

/// Returns the step of the last arrival if a port sends farthest destination first, with one
/// message of `flits` flits to depth `depth` added.
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

/// Flits that remain after an even split go to the trees in turn, starting at the tree with the
/// number of the PE's node.
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

/// Assigns each flit to the tree on which it can arrive first: after all flits of its port, and not
/// before the distance to the PE. Each assigned flit delays the next one by a step, so flits fill
/// the trees up to a common level.
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
        // The number of trees that are filled, and the step up to which they are.
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
