//! Broadcasts on a tree. In rounds, each flit goes to one child after the other, as the token does; the
//! other algorithms use static schedules.

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::ops::{Collective, PeRole};
use flitcast_proto::schedule::flits_of;
use flitcast_proto::{MessageId, PeId, Tree};

use super::algorithm::Algorithm;
use super::blocks;
use super::broadcast_plan::{self, least_steps};
use super::lock_step::{ListTask, LockStep, NotPlanned};
use super::spec::{AlgorithmSpec, AllPorts, Offer, OfferKind, TreeRequirement, no_hops, no_peers};
use super::timetable::Timetable;
use crate::cost::Ports;
use crate::timing::Timing;

/// Flit after flit, each first to the children with the most PEs below them.
const ROUNDS: AlgorithmSpec = AlgorithmSpec {
    collective: Collective::Broadcast,
    name: "rounds",
    sync: None,
    offer: Offer::choice(&[("rounds", None)], "rounds (flit after flit)"),
    fits: TreeRequirement::Trees,
    gives_orders: false,
    all_ports: AllPorts::Never,
    peers: no_peers,
    parts: |_| 1,
    order,
    hops: no_hops,
    plan: LockStep::List(|task| match task.ports {
        Ports::Single => Ok(broadcast_plan::rounds(&task.rooted(), task.flits[0])),
        Ports::PerEdge => Ok(broadcast_plan::all_ports(&task.rooted(), task.flits[0])),
    }),
    bound: |tree, flits| least_steps(tree, flits.iter().copied().max().unwrap_or(0)),
    role: PeRole::FlitByFlit,
};

/// The most urgent child first.
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

/// One child after the other: a baseline.
const CHILD_BY_CHILD: AlgorithmSpec = AlgorithmSpec {
    name: "child-by-child",
    offer: Offer::other(OfferKind::Baseline, "child-by-child"),
    plan: LockStep::List(|task| by_one_port(task, broadcast_plan::child_by_child)),
    hops: |tree, bytes, timing| hops(tree, bytes, timing, broadcast_plan::child_by_child),
    ..URGENT
};

impl Algorithm {
    /// Flit after flit, each as the token goes.
    pub const BROADCAST_ROUNDS: Algorithm = Algorithm::of(&ROUNDS);

    /// In each step to the child that is most behind.
    pub const BROADCAST_URGENT: Algorithm = Algorithm::of(&URGENT);

    /// The whole message to one child after the other, as simple relays do: a baseline.
    pub const BROADCAST_CHILD_BY_CHILD: Algorithm = Algorithm::of(&CHILD_BY_CHILD);
}

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
    let longest = bytes.iter().copied().max().unwrap_or(0);
    let flits = flits_of(longest, timing.flit_bytes());
    let block = flits.div_ceil(MOST_BLOCKS).max(1);
    let owed = tree.subtree_sums(|pe| u64::from(bytes[pe.index()] > 0));
    let parent = |pe: PeId| tree.parent(pe).filter(|_| owed[pe.index()] > 0);
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
    let is_owed = bytes.iter().any(|bytes| *bytes > 0);
    is_owed.then_some(MessageId(0)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use flitcast_proto::seeded::SplitMix64;
    use flitcast_proto::tree::TreeSpec;

    use super::super::Algorithm;
    use super::*;
    use crate::sim;
    use crate::trace::Item;

    type Planned = fn(&Tree, u64) -> Timetable;

    const LISTED: [(Algorithm, Planned); 2] = [
        (Algorithm::BROADCAST_URGENT, broadcast_plan::urgent),
        (
            Algorithm::BROADCAST_CHILD_BY_CHILD,
            broadcast_plan::child_by_child,
        ),
    ];

    fn tree(spec: &str) -> Tree {
        spec.parse::<TreeSpec>().unwrap().build().unwrap()
    }

    /// Every flit crosses every edge in its planned step, from any root.
    #[test]
    fn lists_are_played_as_they_are_planned() {
        for seed in 0..60u64 {
            let mut random = SplitMix64::new(seed);
            let pes = 1 + random.below(12);
            let tree = tree(&format!("random:{pes}:{seed}"));
            let root = PeId(random.below(pes) as u32);
            let tree = Arc::new(tree.rerooted(root));
            let flits = random.below(9);
            for (broadcast, planned) in LISTED {
                let plan = planned(&tree, flits);
                let expected = plan.hops.iter().flat_map(|hop| {
                    let flit = |flit| {
                        let step = hop.first_step + flit * hop.every;
                        (step, hop.from, hop.to, hop.offset + flit + 1)
                    };
                    (0..hop.flits).map(flit)
                });
                let bytes = tree.ids().map(|pe| flits * u64::from(pe != root));
                let bytes: Vec<u64> = bytes.collect();
                let run = sim::run(&tree, broadcast, &bytes).unwrap();
                let crossed = run.crossings.iter().filter_map(|it| match it.item {
                    Item::Flit { index, .. } => Some((it.step, it.from, it.to, index)),
                    Item::Control(_) => None,
                });
                let expected: BTreeSet<_> = expected.collect();
                assert_eq!(crossed.collect::<BTreeSet<_>>(), expected, "seed {seed}");
                let last = run.arrival_steps.iter().max().copied();
                assert_eq!(last, Some(plan.time_steps), "seed {seed}: {broadcast:?}");
            }
        }
    }

    /// P1 is absent, P2 has a copy and forwards the message, P3 and all PEs below it have one.
    #[test]
    fn who_has_a_copy_gets_none_but_what_others_lack() {
        let parents = [None, None, Some(0), Some(0), Some(2), Some(3)];
        let parents = parents.map(|parent| parent.map(PeId));
        let tree = Arc::new(Tree::with_absent(PeId(0), parents.to_vec()).unwrap());
        for (broadcast, _) in LISTED {
            let run = sim::run(&tree, broadcast, &[0, 0, 0, 0, 5, 0]).unwrap();
            let ends: BTreeSet<_> = run
                .crossings
                .iter()
                .map(|it| (it.from.0, it.to.0))
                .collect();
            assert_eq!(ends, BTreeSet::from([(0, 2), (2, 4)]));
            assert_eq!(run.arrival_steps, [0, 0, 0, 0, 6, 0]);
        }
    }

    /// The crossings cover all flits in order and are at most [`MOST_BLOCKS`].
    #[test]
    fn a_list_is_no_longer_than_a_pe_can_be_told() {
        let tree = tree("kary:3:7");
        let flits = 3 * MOST_BLOCKS + 1;
        let bytes = [0, flits, flits, flits, flits, flits, flits];
        let all = hops(&tree, &bytes, &Timing::LOCK_STEP, broadcast_plan::urgent);
        for to in tree.pes().skip(1) {
            let parts = all.iter().filter(|hop| hop.to == to);
            let mut next = 0;
            for part in parts.clone() {
                assert_eq!(part.offset, next);
                next += part.flits;
            }
            assert_eq!(next, flits);
            assert!(parts.count() as u64 <= MOST_BLOCKS);
        }
    }
}
