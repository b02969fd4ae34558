//! What no gather can beat.

use super::{flits_from_depth_down, shoulder_tap};
use crate::Tree;

/// A lower bound on the time of any gather, in steps; 0 if every message is null.
///
/// On any tree: no PE at depth D has word from P0 before step D, so none of its
/// flits reaches P0 before step 2D, and P0 takes one in a step. So for every depth D
/// that holds a nonnull message, 2D - 1 plus the flits at depth D and below.
///
/// On a path the paper's bound (7) is tighter; it assumes that a PE passes its call
/// on before it sends.
pub fn gather_steps(tree: &Tree, flits: &[u64]) -> u64 {
    if tree.is_path() {
        let along: Vec<u64> = tree.top_down().iter().map(|pe| flits[pe.index()]).collect();
        return shoulder_tap::bound_steps(&along);
    }
    let depths = flits_from_depth_down(tree, flits).into_iter();
    depths
        .map(|(depth, flits)| flits + 2 * depth - 1)
        .max()
        .unwrap_or(0)
}
