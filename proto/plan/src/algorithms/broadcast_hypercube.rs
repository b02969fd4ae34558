//! Broadcast over the trees of a hypercube in a complete network of 2, 4, 8 and so on PEs. The
//! flits of the message go to the trees in turn, so the message has a part for each tree. One
//! static schedule covers all trees; a PE sends one flit and receives one in each step.

use flitcast_proto::items::{Packing, ScheduledHop};
use flitcast_proto::ops::parts::even_flits;
use flitcast_proto::schedule::flits_of;
use flitcast_proto::{MessageId, PeId, Tree};

use super::algorithm::Algorithm;
use super::broadcast::{MOST_BLOCKS, URGENT};
use super::broadcast_plan::{self, least_steps_of_complete};
use super::spec::{AlgorithmSpec, TreeRequirement};
use crate::timing::Timing;

/// Flit k goes down tree `k mod d` (Johnsson, Ho; 1989): `flits + d` steps among `2^d` PEs.
const HYPERCUBE: AlgorithmSpec = AlgorithmSpec {
    name: "hypercube",
    ways: &[("hypercube", None)],
    fits: TreeRequirement::Cubes,
    gives_orders: true,
    peers: |tree, pe| {
        let dimensions = 0..tree.len().ilog2();
        dimensions.map(|it| PeId(pe.0 ^ (1 << it))).collect()
    },
    parts: |tree| dimensions(tree).max(1) as usize,
    hops,
    bound: |tree, flits| {
        least_steps_of_complete(tree.len(), flits.iter().copied().max().unwrap_or(0))
    },
    ..URGENT
};

impl Algorithm {
    /// Over the trees of a hypercube on a complete network.
    pub const BROADCAST_HYPERCUBE: Algorithm = Algorithm::of(&HYPERCUBE);
}

fn dimensions(tree: &Tree) -> u32 {
    tree.len().ilog2()
}

/// Returns the crossings, planned for flits, or, for a long message, for blocks of flits of one
/// tree.
fn hops(tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<ScheduledHop> {
    let longest = bytes.iter().copied().max().unwrap_or(0);
    let flits = flits_of(longest, timing.flit_bytes());
    let trees = dimensions(tree).max(1);
    let block = flits.div_ceil(MOST_BLOCKS).max(1);
    let of_trees = even_flits(flits, trees as usize);
    let blocks = of_trees.iter().map(|flits| flits.div_ceil(block)).sum();
    let plan = broadcast_plan::hypercube(dimensions(tree), blocks);
    // The plan is one from P0.
    let seen = |pe: PeId| PeId(pe.0 ^ tree.root().0);
    let crossings = plan.hops.into_iter().map(|hop| {
        let (part, before) = (hop.offset % u64::from(trees), hop.offset / u64::from(trees));
        let offset = before * block;
        ScheduledHop {
            message: MessageId(part),
            offset,
            flits: block.min(of_trees[part as usize] - offset),
            from: seen(hop.from),
            to: seen(hop.to),
            first_step: (hop.first_step - 1) * block + 1,
            every: 1,
            packing: Packing::Flits,
        }
    });
    let mut hops: Vec<ScheduledHop> = crossings.collect();
    hops.sort_by_key(|hop| (hop.first_step, hop.from, hop.to));
    hops
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::super::Algorithm;
    use super::*;
    use crate::sim;
    use crate::trace::Item;

    const OPERATION: Algorithm = Algorithm::BROADCAST_HYPERCUBE;

    fn path(pes: u32) -> Tree {
        let parents = (0..pes).map(|pe| pe.checked_sub(1).map(PeId));
        Tree::from_parents(parents.collect()).unwrap()
    }

    /// Every flit crosses every edge in its planned step, from any root.
    #[test]
    fn lists_are_played_as_they_are_planned() {
        for (dimensions, flits, root) in (0..5).flat_map(|dimensions| {
            let all = (0..40u64).step_by(3);
            all.map(move |flits| (dimensions, flits, flits as u32 % (1 << dimensions)))
        }) {
            let tree = Arc::new(path(1 << dimensions).rerooted(PeId(root)));
            let plan = broadcast_plan::hypercube(dimensions, flits);
            let expected = plan.hops.iter().map(|hop| {
                let ends = [hop.from.0 ^ root, hop.to.0 ^ root];
                (hop.first_step, ends, hop.offset)
            });
            let bytes = tree.ids().map(|pe| flits * u64::from(pe.0 != root));
            let bytes: Vec<u64> = bytes.collect();
            let run = sim::run(&tree, OPERATION, &bytes).unwrap();
            let trees = u64::from(dimensions.max(1));
            let crossed = run.crossings.iter().filter_map(|it| match it.item {
                Item::Flit { message, index, .. } => {
                    let flit = (index - 1) * trees + message.id.0;
                    Some((it.step, [it.from.0, it.to.0], flit))
                }
                Item::Control(_) => None,
            });
            let expected: BTreeSet<_> = expected.collect();
            assert_eq!(crossed.collect::<BTreeSet<_>>(), expected);
            let last = run.arrival_steps.iter().max().copied();
            assert_eq!(last, Some(plan.time_steps));
            let is_within = plan.time_steps <= flits + u64::from(dimensions);
            assert!(is_within || flits == 0);
        }
    }

    /// All PEs get all flits of a message of any length, each part in order.
    #[test]
    fn a_list_is_no_longer_than_a_pe_can_be_told() {
        let tree = path(8);
        for flits in [MOST_BLOCKS, 3 * MOST_BLOCKS + 1, 7 * MOST_BLOCKS + 5] {
            let bytes: Vec<u64> = (0..8).map(|pe| flits * u64::from(pe > 0)).collect();
            let all = hops(&tree, &bytes, &Timing::LOCK_STEP);
            for to in tree.pes().skip(1) {
                let mut of_parts = [0; 3];
                for hop in all.iter().filter(|hop| hop.to == to) {
                    let here = &mut of_parts[hop.message.index()];
                    assert_eq!(hop.offset, *here);
                    *here += hop.flits;
                }
                assert_eq!(of_parts.to_vec(), even_flits(flits, 3));
                let count = all.iter().filter(|hop| hop.to == to).count() as u64;
                assert!(count <= MOST_BLOCKS + 3);
            }
        }
    }

    /// A PE with a copy forwards what other PEs lack.
    #[test]
    fn who_has_a_copy_gets_none() {
        let tree = Arc::new(path(4));
        let run = sim::run(&tree, OPERATION, &[0, 6, 0, 6]).unwrap();
        assert_eq!(run.arrival_steps[2], 0);
        assert!(run.arrival_steps[1] > 0 && run.arrival_steps[3] > 0);
        assert!(
            sim::run(&tree, OPERATION, &[0; 4])
                .unwrap()
                .crossings
                .is_empty()
        );
    }
}
