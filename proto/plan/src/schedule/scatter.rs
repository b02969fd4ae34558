//! Scattering: P0 sends the messages back to back, farthest destination first
//! (paper 000, section II).

use flitcast_proto::{PeId, Tree};

use crate::timing::Timing;

/// Returns the nonnull messages by decreasing depth of their destination, ties by index: farthest
/// destination first. Optimal on every tree, for any lengths (paper 000, Theorem 1).
pub fn farthest_first(tree: &Tree, flits: &[u64]) -> Vec<PeId> {
    let mut order: Vec<PeId> = tree.pes().filter(|pe| flits[pe.index()] > 0).collect();
    order.sort_by_key(|&pe| (std::cmp::Reverse(tree.depth(pe)), pe));
    order
}

/// Returns the order corresponding to farthest first on unequal edges (spec, section 7): by decreasing
/// tail, among equal ones the farther first, ties by index. A message's tail is the time from its last
/// byte in P0's port until that byte is at its destination: latencies, a flit's time on each later edge
/// (its set-up included), and what the slowest edge on its way adds to the first one. In lock step it
/// is the depth, and on equal edges the order is the same.
pub fn decreasing_tail(tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<PeId> {
    // Per PE, for all messages through it: latencies from P0's port to here, the time of the last flit
    // on the later edges whatever its length, ticks per byte of that flit, and the slowest edge so far.
    let mut ways = vec![(0u64, 0f64, 0f64, 0f64); tree.len()];
    for &pe in tree.top_down() {
        let Some(parent) = tree.parent(pe) else {
            continue;
        };
        let (latency, setup, per_byte, slowest) = ways[parent.index()];
        let edge = timing.down(pe);
        let later = match parent == tree.root() {
            true => [0.0, 0.0],
            false => [edge.ticks_per_packet, edge.ticks_per_byte],
        };
        ways[pe.index()] = (
            latency.saturating_add(edge.latency),
            setup + later[0],
            per_byte + later[1],
            slowest.max(edge.full_ticks_per_byte()),
        );
    }
    // Measurements sometimes have errors of more than a few percent. Equal edges should give farthest
    // first, so tails that differ by less than the latency of an edge count as equal.
    let latencies = tree.below_root().map(|pe| timing.down(pe).latency);
    let mut latencies: Vec<u64> = latencies.collect();
    latencies.sort_unstable();
    let median = latencies.get(latencies.len() / 2).copied();
    let quantum = median.unwrap_or(0).max(1);
    let tail = |pe: PeId| {
        let (latency, setup, per_byte, slowest) = ways[pe.index()];
        let bytes = bytes[pe.index()];
        let flit = bytes.min(timing.flit_bytes_of(pe.into()).into()) as f64;
        let first = tree.child_toward(tree.root(), pe).unwrap_or(pe);
        let adds = (slowest - timing.down(first).full_ticks_per_byte()) * bytes as f64;
        let tail = latency.saturating_add((setup + per_byte * flit + adds).round() as u64);
        tail.saturating_add(quantum / 2) / quantum
    };
    let mut order: Vec<PeId> = tree.pes().filter(|pe| bytes[pe.index()] > 0).collect();
    order.sort_by_cached_key(|&pe| (std::cmp::Reverse((tail(pe), tree.depth(pe))), pe));
    order
}

/// Returns the least time of any scatter, in steps: the maximum, over the depths D that hold a nonnull
/// message, of the flits at depth D and below, plus D - 1.
pub fn optimal_steps(tree: &Tree, flits: &[u64]) -> u64 {
    let depths = super::flits_from_depth_down(tree, flits).into_iter();
    let steps = depths.map(|(depth, flits)| flits + depth - 1);
    steps.max().unwrap_or(0)
}
