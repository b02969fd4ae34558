//! Bounds of gathers in packets.

use std::sync::Arc;

use flitcast_proto::seeded::SplitMix64;

use super::*;
use crate::packets::plan as plan_scatter;
use crate::tests::{lengths, shaped};

/// A random tree with uneven messages and a link's cost.
fn case(seed: u64) -> (Arc<Tree>, Vec<u64>, LinkCost) {
    let mut random = SplitMix64::new(seed);
    let pes = 2 + random.below(11);
    let most = [2, 9, 40][random.below(3) as usize];
    let flits = lengths(pes, |_| random.below(most));
    let beta = ["0", "1/2", "1", "2", "7"][random.below(5) as usize];
    let cost = beta.parse().expect("a set-up cost");
    let tree = shaped(&["path", "kary", "star", "random"], pes, seed);
    (tree, flits, cost)
}

/// `tests/tests/packets` replays printed plans packet by packet.
#[test]
fn no_gather_beats_its_bounds() {
    for seed in 0..400 {
        let (tree, flits, cost) = case(seed);
        let longest = flits.iter().copied().max().unwrap_or(0).max(1);
        let mirror = plan_scatter(&tree, &flits, cost, 0).expect("it is small");
        for cap in [1, 2, 3, longest.div_ceil(2), longest] {
            for control in [ControlCost::Packet, ControlCost::Free] {
                let certified = plan(&tree, &flits, cost, control, cap).expect("it is small");
                assert!(mirror.bound <= certified.time, "{seed} {cap}");
                let upper = certified.upper_bound(&tree, &flits, cost);
                assert!(certified.time <= upper, "{seed} {cap} {control:?}");
            }
        }
    }
}
