//! Bounds of gathers in packets.

use std::sync::Arc;

use flitcast_proto::seeded::SplitMix64;

use super::*;
use crate::packets::tree::Scatter;
use crate::packets::{bounds, plan as plan_scatter};
use crate::tests::{lengths, shaped, tree};

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

/// The bound of the mirror, and the upper bound, in the golden case of a path (spec-packets.md,
/// sections 7 and 11): 2B = 30, depth 5, k = 3, at most one child, packets of one flit, 27 of the
/// streams.
#[test]
fn the_golden_path_is_between_its_bounds() {
    let (tree, flits) = (tree("path:6"), [0, 2, 3, 0, 2, 1]);
    let cost: LinkCost = "2".parse().expect("a set-up cost");
    let certified = plan(&tree, &flits, cost, ControlCost::Packet, 1).expect("it is small");
    assert_eq!(certified.time, 63);
    let scatter = Scatter::new(&tree, &flits, cost).expect("it is small");
    assert!(bounds::from_the_beginning(&scatter) <= 19);
    let upper = certified.upper_bound(&tree, &flits, cost);
    assert_eq!(upper, 30 + 5 * (3 + 2 + 1) + 8 + 8 * 2);
}
