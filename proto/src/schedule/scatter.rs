//! Scattering: P0 sends the messages back to back, farthest destination first
//! (paper 000, section II).

use crate::{PeId, Tree};

/// Farthest-destination-first: the nonnull messages by decreasing depth of their
/// destination, ties by index. Optimal on every tree, for any lengths (paper
/// 000, Theorem 1).
pub fn farthest_first(tree: &Tree, flits: &[u64]) -> Vec<PeId> {
    let mut order: Vec<PeId> = tree.pes().filter(|pe| flits[pe.index()] > 0).collect();
    order.sort_by_key(|&pe| (std::cmp::Reverse(tree.depth(pe)), pe));
    order
}

/// The step in which the last flit of each message of `order` arrives:
/// tau(i) + L_i + depth(i) - 1.
pub fn arrival_steps(tree: &Tree, flits: &[u64], order: &[PeId]) -> Vec<u64> {
    let mut sent = 0;
    order
        .iter()
        .map(|&pe| {
            sent += flits[pe.index()];
            sent + u64::from(tree.depth(pe)) - 1
        })
        .collect()
}

/// The least time of any scatter, in steps: the maximum, over the depths D that
/// hold a nonnull message, of the flits at depth D and below, plus D - 1.
pub fn optimal_steps(tree: &Tree, flits: &[u64]) -> u64 {
    let depths = super::flits_from_depth_down(tree, flits).into_iter();
    depths
        .map(|(depth, flits)| flits + depth - 1)
        .max()
        .unwrap_or(0)
}
