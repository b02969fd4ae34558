//! Broadcasts on a tree. In rounds, each flit goes to one child after the other, as the token does; the
//! other algorithms use static schedules.

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::ops::{Collective, PeRole};
use flitcast_proto::{MessageId, PeId, Tree};

use super::blocks;
use super::broadcast_plan::{self, least_steps};
use super::lock_step::{ListTask, LockStep, NotPlanned};
use super::spec::{AlgorithmSpec, BASE, Offer, OfferKind};
use super::timetable::Timetable;
use crate::cost::Ports;
use crate::timing::Timing;

/// Flit after flit, each as the token goes.
pub(super) const ROUNDS: AlgorithmSpec = AlgorithmSpec {
    collective: Collective::Broadcast,
    name: "rounds",
    offer: Offer::choice(&[("rounds", None)], "rounds (flit after flit)"),
    role: PeRole::FlitByFlit,
    order,
    plan: LockStep::List(|task| match task.ports {
        Ports::Single => Ok(broadcast_plan::rounds(&task.rooted(), task.flits[0])),
        Ports::PerEdge => Ok(broadcast_plan::all_ports(&task.rooted(), task.flits[0])),
    }),
    bound: |tree, flits| least_steps(tree, flits.iter().copied().max().unwrap_or(0)),
    ..BASE
};

/// In each step to the child that is most behind.
pub(super) const URGENT: AlgorithmSpec = AlgorithmSpec {
    name: "urgent",
    offer: Offer::choice(
        &[("urgent", None)],
        "urgent (in each step to the child that lags most)",
    ),
    plan: LockStep::FlitByFlit(|task| by_one_port(task, broadcast_plan::urgent)),
    hops: |tree, bytes, timing| hops(tree, bytes, timing, broadcast_plan::urgent),
    role: PeRole::StaticSchedule,
    ..ROUNDS
};

/// The whole message to one child after the other, as simple relays do: a baseline.
pub(super) const CHILD_BY_CHILD: AlgorithmSpec = AlgorithmSpec {
    name: "child-by-child",
    offer: Offer::other(OfferKind::Baseline, "child-by-child"),
    plan: LockStep::List(|task| by_one_port(task, broadcast_plan::child_by_child)),
    hops: |tree, bytes, timing| hops(tree, bytes, timing, broadcast_plan::child_by_child),
    ..URGENT
};

/// Plans the one message, with one port for each PE.
pub(super) fn by_one_port(
    task: &ListTask<'_>,
    planned: fn(&Tree, u64) -> Timetable,
) -> Result<Timetable, NotPlanned> {
    match task.ports {
        Ports::Single => Ok(planned(&task.rooted(), task.flits[0])),
        Ports::PerEdge => Err(NotPlanned::unfit(
            "with --ports multi a PE sends to all its children at once",
        )),
    }
}

/// Maximum number of blocks into which a static schedule cuts a message, which bounds the
/// schedule's size. A message with at most this number of flits is cut into single flits.
pub const MOST_BLOCKS: u64 = 1024;

/// Returns the crossings to PEs that lack the message, planned for flits, or, for a long message,
/// for blocks of flits of equal length. Flits that do not follow each other step by step cross
/// separately.
pub(super) fn hops(
    tree: &Tree,
    bytes: &[u64],
    timing: &Timing,
    planned: fn(&Tree, u64) -> Timetable,
) -> Vec<ScheduledHop> {
    let flits = timing.flits_of_longest(bytes);
    let block = flits.div_ceil(MOST_BLOCKS).max(1);
    let receivers = tree.subtree_sums(|pe| u64::from(bytes[pe.index()] > 0));
    let parent = |pe: PeId| tree.parent(pe).filter(|_| receivers[pe.index()] > 0);
    let parents = tree.ids().map(parent).collect();
    let Ok(served) = Tree::with_absent(tree.root(), parents) else {
        unreachable!("a tree without whole branches is a tree")
    };
    let plan = planned(&served, flits.div_ceil(block));
    let mut hops = blocks::in_flits(plan.hops, block, |_| flits);
    hops.sort_by_key(|hop| hop.first_step);
    hops
}

/// Returns the one message, unless it is null.
fn order(_tree: &Tree, bytes: &[u64], _timing: &Timing) -> Vec<MessageId> {
    let is_needed = bytes.iter().any(|bytes| *bytes > 0);
    is_needed.then_some(MessageId(0)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::super::Algorithm;
    use super::*;
    use crate::sim;
    use crate::tests::tree;

    /// All broadcasts with a static schedule.
    fn listed() -> impl Iterator<Item = Algorithm> {
        Algorithm::listed(Collective::Broadcast).filter(|one| one.is_static())
    }

    /// P1 is absent, P2 has a copy and forwards the message, P3 and all PEs below it have one.
    #[test]
    fn a_pe_with_a_copy_gets_only_what_others_lack() {
        let parents = [None, None, Some(0), Some(0), Some(2), Some(3)];
        let parents = parents.map(|parent| parent.map(PeId));
        let lacking = Arc::new(Tree::with_absent(PeId(0), parents.to_vec()).unwrap());
        for broadcast in listed().filter(|one| one.fits().stays_in_tree()) {
            let run = sim::run(&lacking, broadcast, &[0, 0, 0, 0, 5, 0]).unwrap();
            let ends = run.crossings.iter().map(|it| (it.from.0, it.to.0));
            assert_eq!(BTreeSet::from_iter(ends), BTreeSet::from([(0, 2), (2, 4)]));
            assert_eq!(run.arrival_steps, [0, 0, 0, 0, 6, 0]);
        }
        for among_all in listed().filter(|one| !one.fits().stays_in_tree()) {
            let run = |bytes| sim::run(&tree("path:4"), among_all, bytes).unwrap();
            let arrivals = run(&[0, 6, 0, 6]).arrival_steps;
            let has_arrived: Vec<bool> = arrivals.iter().map(|step| *step > 0).collect();
            assert_eq!(has_arrived, [false, true, false, true], "{among_all:?}");
            assert!(run(&[0; 4]).crossings.is_empty(), "{among_all:?}");
        }
    }

    /// The crossings cover all flits of a message of any length, each part in order, and are about
    /// [`MOST_BLOCKS`] at most.
    #[test]
    fn a_list_is_no_longer_than_a_pe_accepts() {
        for (broadcast, spec, more) in [
            (Algorithm::BROADCAST_URGENT, "kary:3:7", 0),
            (Algorithm::BROADCAST_ON_CUBES, "path:8", 3),
            (Algorithm::BROADCAST_CIRCULANT, "path:9", 5),
        ] {
            let tree = tree(spec);
            for flits in [MOST_BLOCKS, 3 * MOST_BLOCKS + 1, 7 * MOST_BLOCKS + 5] {
                let bytes: Vec<u64> = tree.ids().map(|pe| flits * u64::from(pe.0 > 0)).collect();
                let all = broadcast.hops(&tree, &bytes, &Timing::LOCK_STEP);
                for to in tree.below_root() {
                    let mut of_parts = vec![0; broadcast.parts(&tree)];
                    let to_it: Vec<_> = all.iter().filter(|hop| hop.to == to).collect();
                    for hop in &to_it {
                        let here = &mut of_parts[hop.message.index()];
                        assert_eq!(hop.offset, *here, "{broadcast:?}");
                        *here += hop.flits;
                    }
                    assert_eq!(of_parts, broadcast.part_flits(&tree, flits));
                    assert!(to_it.len() as u64 <= MOST_BLOCKS + more, "{broadcast:?}");
                }
            }
        }
    }
}
