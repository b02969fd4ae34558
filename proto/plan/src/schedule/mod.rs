//! The order of the messages of a scatter or a gather, and lower bounds on its time, in flits and steps.

pub mod order_search;
pub mod scatter;

use flitcast_proto::{PeId, Tree};

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

/// Returns a lower bound on the time of any gather in which a PE sends data only after an item from P0
/// has reached it, in steps; 0 if every message is null. The greater of two:
///
/// - For every depth D that holds a nonnull message, 2D - 1 plus the flits at depth D and below: no PE
///   there is reached by P0 before step D, so none of those flits reaches P0 before step 2D, and P0
///   receives one in a step.
/// - For every PE whose subtree holds flits, at depth D, 2D - 1 plus its subtree's flits plus its
///   children whose subtrees hold some: after step D its one send port has to send an order to each of
///   those and all of the flits up, a flit last, and that one has D - 1 edges ahead.
///
/// On a path the second is the paper's bound (7), except for one step where the last PEs' messages are
/// null: (7) includes a wakeup call that no PE needs.
pub fn gather_steps(tree: &Tree, flits: &[u64]) -> u64 {
    let below = tree.subtree_sums(|pe| flits[pe.index()]);
    let holds_flits = |pe: &&PeId| below[pe.index()] > 0;
    let by_port = tree.below_root().filter(|pe| holds_flits(&pe)).map(|pe| {
        let orders = tree.children(pe).iter().filter(holds_flits).count() as u64;
        2 * u64::from(tree.depth(pe)) - 1 + orders + below[pe.index()]
    });
    by_port.fold(gather_steps_beside_control(tree, flits), u64::max)
}

/// Returns a lower bound like [`gather_steps`] if control items have ports of their own, so that orders
/// delay no flit: only its first part holds then, which is never below the second without orders.
pub fn gather_steps_beside_control(tree: &Tree, flits: &[u64]) -> u64 {
    let by_depth = flits_from_depth_down(tree, flits).into_iter();
    let by_depth = by_depth.map(|(depth, below)| 2 * depth - 1 + below);
    by_depth.max().unwrap_or(0)
}
