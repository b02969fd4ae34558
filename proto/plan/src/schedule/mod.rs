//! The order of the messages of a scatter or a gather, and lower bounds on its time, in flits and steps.

pub mod bounds;
pub mod order_search;
pub mod scatter;

use flitcast_proto::Tree;

/// Returns for each depth that holds a nonnull message, deepest first, the depth, and the flits at that
/// depth and below.
fn flits_from_depth_down(tree: &Tree, flits: &[u64]) -> Vec<(u64, u64)> {
    let mut at_depth = vec![0u64; tree.height() as usize + 1];
    for pe in tree.pes() {
        at_depth[tree.depth(pe) as usize] += flits[pe.index()];
    }
    let mut down_from_here = 0;
    let by_depth = (0..).zip(at_depth).filter(|(_, flits)| *flits > 0);
    let by_depth: Vec<(u64, u64)> = by_depth.collect();
    let down = by_depth.into_iter().rev().map(|(depth, flits)| {
        down_from_here += flits;
        (depth, down_from_here)
    });
    down.collect()
}
