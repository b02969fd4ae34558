//! Broadcast over the trees of a hypercube in a complete network of 2, 4, 8 and so on PEs. The
//! flits of the message go to the trees in turn, so the message has a part for each tree. One
//! static schedule covers all trees; a PE sends one flit and receives one in each step.

use flitcast_proto::items::{Packing, ScheduledHop};
use flitcast_proto::ops::parts::even_flits;
use flitcast_proto::schedule::flits_of;
use flitcast_proto::{MessageId, PeId, Tree};

use super::algorithm::Algorithm;
use super::broadcast::{MOST_BLOCKS, URGENT};
use super::broadcast_plan::{hop, least_steps_among_all};
use super::lock_step::LockStep;
use super::spec::{AlgorithmSpec, Offer, TreeRequirement};
use super::timetable::Timetable;
use crate::timing::Timing;

/// Flit k goes down tree `k mod d` (Johnsson, Ho; 1989): `flits + d` steps among `2^d` PEs.
const HYPERCUBE: AlgorithmSpec = AlgorithmSpec {
    name: "hypercube",
    offer: Offer {
        network: "hypercube",
        ..Offer::choice(&[("hypercube", None)], "")
    },
    fits: TreeRequirement::Cubes,
    gives_orders: true,
    peers: |tree, pe| {
        let dimensions = 0..tree.len().ilog2();
        dimensions.map(|it| PeId(pe.0 ^ (1 << it))).collect()
    },
    parts: |tree| dimensions(tree).max(1) as usize,
    hops,
    plan: LockStep::FlitByFlit(|task| {
        let mut plan = over_trees(dimensions(task.tree), task.flits[0]);
        for hop in &mut plan.hops {
            (hop.from, hop.to) = seen_from(task.source, hop);
        }
        Ok(plan)
    }),
    bound: least_steps_among_all,
    ..URGENT
};

impl Algorithm {
    /// Over the trees of a hypercube on a complete network.
    pub const BROADCAST_HYPERCUBE: Algorithm = Algorithm::of(&HYPERCUBE);
}

fn dimensions(tree: &Tree) -> u32 {
    tree.len().ilog2()
}

/// Returns the ends of a crossing of the plan from P0 in the plan from another PE: XOR renames the PEs.
fn seen_from(source: PeId, hop: &ScheduledHop) -> (PeId, PeId) {
    let seen = |pe: PeId| PeId(pe.0 ^ source.0);
    (seen(hop.from), seen(hop.to))
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
    let plan = over_trees(dimensions(tree), blocks);
    let crossings = plan.hops.into_iter().map(|hop| {
        let (from, to) = seen_from(tree.root(), &hop);
        let (part, before) = (hop.offset % u64::from(trees), hop.offset / u64::from(trees));
        let offset = before * block;
        ScheduledHop {
            message: MessageId(part),
            offset,
            flits: block.min(of_trees[part as usize] - offset),
            from,
            to,
            first_step: (hop.first_step - 1) * block + 1,
            every: 1,
            packing: Packing::Flits,
        }
    });
    let mut hops: Vec<ScheduledHop> = crossings.collect();
    hops.sort_by_key(|hop| (hop.first_step, hop.from, hop.to));
    hops
}

/// Plans a broadcast in a complete network of `2^dimensions` PEs in which flit k goes down tree `k
/// mod dimensions` of a hypercube (Johnsson, Ho; 1989). The arcs of the trees are disjoint; in a
/// step, all PEs use one dimension. It takes `flits + dimensions` steps.
fn over_trees(dimensions: u32, flits: u64) -> Timetable {
    let (d, pes) = (u64::from(dimensions), 1u32 << dimensions);
    // Dimension 0 is the highest bit.
    let bit = |dimension: u64| 1u32 << (d - 1 - dimension);
    // The dimension of the arc that leads to a PE in a tree.
    let arc = |tree: u64, pe: u32| {
        if pe & bit(tree) == 0 {
            return tree;
        }
        let earlier = (1..=d).map(|back| (tree + d - back) % d);
        let mut set = earlier.filter(|dimension| pe & bit(*dimension) != 0);
        set.next().unwrap_or(tree)
    };
    let mut plan = Timetable::default();
    // By PE: the steps of each flit's arrival and of its last departure.
    let mut came = vec![vec![0; flits as usize]; pes as usize];
    let mut gone = came.clone();
    for flit in 0..flits {
        let tree = flit % d.max(1);
        for pe in 1..pes {
            let dimension = arc(tree, pe);
            let parent = pe ^ bit(dimension);
            let wait = match (dimension + d - tree) % d {
                0 if parent != 0 => d,
                wait => wait,
            };
            let step = flit + 1 + wait;
            plan.hops
                .push(hop(PeId(parent), PeId(pe), [flit, 1], step, 1));
            plan.time_steps = plan.time_steps.max(step);
            came[pe as usize][flit as usize] = step;
            let last = &mut gone[parent as usize][flit as usize];
            *last = step.max(*last);
        }
    }
    let kept = came.iter().zip(&gone).skip(1);
    let most_kept = kept.map(|(came, gone)| kept_flits(came, gone)).max();
    Timetable {
        kept_flits: Some(most_kept.unwrap_or(0)),
        ..plan
    }
}

/// Returns the maximum number of flits that a PE keeps at the end of a step, each from its arrival
/// to its departure.
fn kept_flits(came: &[u64], gone: &[u64]) -> u64 {
    let stays = came.iter().zip(gone).filter(|(came, gone)| gone > came);
    let ends = stays.flat_map(|(came, gone)| [(*gone, -1), (*came, 1)]);
    let mut ends: Vec<(u64, i64)> = ends.collect();
    // A flit that departs in a step is not kept at its end.
    ends.sort_unstable();
    let counts = ends.iter().scan(0, |here, (_, change)| {
        *here += change;
        Some(*here)
    });
    counts.max().unwrap_or(0) as u64
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
            let plan = over_trees(dimensions, flits);
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
