//! Schedules: the sender, the message and the time of each transmission, computed from a tree and its
//! message lengths, in flits and steps. The PE state machine, the predictor and the closed forms in
//! tests all use them.
//!
//! Everywhere in this module `flits[i]` is L_i, the flits of message M_i, and `flits[0]` is 0: P0 has
//! no message. Steps are counted as in ARCHITECTURE.md, "Steps": 1, 2, 3, ..; a flit sent in step t is
//! received in step t, and the time of an operation is the last step in which a flit reaches its
//! destination.

pub mod bounds;
pub mod certification;
pub mod order_search;
pub mod pace;
pub mod scatter;
pub mod shoulder_tap;

use crate::Tree;

/// Returns the number of flits of a message of `bytes` bytes; a null message has none.
pub fn flits_of(bytes: u64, flit_bytes: u32) -> u64 {
    bytes.div_ceil(u64::from(flit_bytes))
}

/// Returns for each depth that holds a nonnull message, deepest first, the depth, and the flits at that
/// depth and below.
fn flits_from_depth_down(tree: &Tree, flits: &[u64]) -> Vec<(u64, u64)> {
    let deepest = tree.pes().map(|pe| tree.depth(pe)).max().unwrap_or(0);
    let mut at_depth = vec![0u64; deepest as usize + 1];
    for pe in tree.pes() {
        at_depth[tree.depth(pe) as usize] += flits[pe.index()];
    }
    let mut down_from_here = 0;
    let by_depth = at_depth.iter().enumerate().rev();
    by_depth
        .filter(|(_, flits)| **flits > 0)
        .map(|(depth, flits)| {
            down_from_here += flits;
            (depth as u64, down_from_here)
        })
        .collect()
}
