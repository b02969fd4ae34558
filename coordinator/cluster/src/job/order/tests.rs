use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::plan::plan_scatter;
use flitcast_plan::cost::{Host, Hosts, Ports};
use flitcast_plan::schedule::scatter as rules;
use flitcast_proto::cost::{Edge, Link};
use flitcast_proto::seeded::SplitMix64;

use super::*;
use crate::job::decisions::Decisions;
use crate::job::test_tree::{edge, tree};
use crate::tuning::BUFFER_BYTES;

const FLIT_BYTES: u32 = 1000;

/// Returns a model with wires whose rates differ by up to a factor of 16, and processes without costs.
fn random_model(random: &mut SplitMix64, pes: usize) -> Model {
    let mut edge = || {
        let down = Link {
            latency_ns: random.below(3_000) as f64,
            ns_per_byte: (1 << random.below(5)) as f64,
            burst_bytes: [0.0, 700.0][random.below(2) as usize],
            setup_ns: 0.0,
        };
        Edge { down, up: down }
    };
    let edges = (0..pes).map(|_| edge()).collect();
    Model {
        edges,
        hosts: Hosts::one(Host::NONE),
        ports: [Ports::Single, Ports::PerEdge][random.below(2) as usize],
        buffer_bytes: BUFFER_BYTES,
        ahead_ns: f64::INFINITY,
        ..Model::unit(pes)
    }
}

fn random_tree(random: &mut SplitMix64, pes: u64) -> Arc<Tree> {
    let parents = (0..pes).map(|pe| (pe > 0).then(|| PeId(random.below(pe) as u32)));
    Arc::new(Tree::from_parents(parents.collect()).expect("each parent comes first"))
}

/// Returns lengths below `most`; the root has no message.
fn random_lengths(random: &mut SplitMix64, pes: u64, most: u64) -> Vec<u64> {
    let length = |pe| if pe > 0 { random.below(most) } else { 0 };
    (0..pes).map(length).collect()
}

/// Plans a round of an operation, and then in another order.
fn in_order(
    (tree, operation): (&Arc<Tree>, Algorithm),
    bytes: &[u64],
    model: &Model,
    order: &MessageOrder,
) -> [PlannedRound; 2] {
    let decisions = Decisions::of(operation, Pacing::Scheduled);
    let planner = Planner::new(tree, &decisions, bytes, model);
    let before = || planner.plan_and_predict(FLIT_BYTES).expect("a schedule");
    let found = ordered(&planner, order, before()).expect("a schedule");
    [before(), found]
}

/// Plans a scatter, and then in the order that is searched for.
fn searched(tree: &Arc<Tree>, bytes: &[u64], model: &Model) -> [PlannedRound; 2] {
    let scatter = (tree, Algorithm::FARTHEST_FIRST);
    in_order(scatter, bytes, model, &MessageOrder::Search)
}

/// Returns the duration of a round in the quickest of all orders.
fn brute_force(tree: &Arc<Tree>, schedules: &[PeSchedule], model: &Model) -> u64 {
    fn each(order: &mut Vec<usize>, left: &mut Vec<usize>, look: &mut dyn FnMut(&[usize])) {
        if left.is_empty() {
            return look(order);
        }
        for place in 0..left.len() {
            order.push(left.remove(place));
            each(order, left, look);
            left.insert(place, order.pop().expect("it was put there"));
        }
    }
    let mut least = u64::MAX;
    let mut all = (0..schedules[0].sends.len()).collect();
    each(&mut Vec::new(), &mut all, &mut |order| {
        let mut schedules = schedules.to_vec();
        reorder(&mut schedules[0], order);
        let prediction =
            flitcast_plan::predict::predict(tree, &schedules, model).expect("a schedule");
        least = least.min(prediction.round_ns());
    });
    least
}

#[test]
fn no_order_beats_the_bound_nor_one_that_is_called_optimal() {
    let mut random = SplitMix64::new(7);
    let (mut better, mut optimal, mut best) = (0, 0, 0);
    const CASES: u64 = 300;
    for _ in 0..CASES {
        let pes = 3 + random.below(4) as usize;
        let tree = random_tree(&mut random, pes as u64);
        let bytes = random_lengths(&mut random, pes as u64, 20_000);
        let model = random_model(&mut random, pes);
        let [before, found] = searched(&tree, &bytes, &model);
        let least = brute_force(&tree, &before.schedules, &model);
        let choice = found.scatter_order();
        assert_eq!(choice.predicted_ns, found.prediction.round_ns());
        assert!(choice.predicted_ns <= choice.tail_first_ns.min(choice.farthest_first_ns));
        // Times are rounded to nanoseconds, hop by hop.
        assert!(choice.bound_ns <= least + 10, "{choice:?}, {least}");
        assert!(least <= choice.predicted_ns);
        if choice.gap_pct == 0.0 {
            assert!(choice.predicted_ns <= least + 10, "{choice:?}, {least}");
            optimal += 1;
        }
        better += u32::from(choice.predicted_ns < choice.tail_first_ns);
        best += u32::from(choice.predicted_ns == least);
    }
    assert!(better > 10 && optimal > 30);
    assert!(best > CASES as u32 * 8 / 10, "{best}");
}

/// Two relays have links half as fast as the root's: with farthest first the root serves one relay
/// completely before the other.
#[test]
fn slow_relays_get_their_messages_by_turns() {
    let tree = tree("kary:2:7");
    let mut model = random_model(&mut SplitMix64::new(1), tree.len());
    model.ports = Ports::Single;
    model.edges = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0].map(edge).to_vec();
    let bytes = [0, 0, 0, 100_000, 100_000, 100_000, 100_000];
    let [_, found] = searched(&tree, &bytes, &model);
    let sends = found.schedules[0].sends.iter();
    let relays: Vec<u32> = sends.map(|m| (m.id.pe().0 - 1) / 2).collect();
    assert_ne!(relays[0], relays[1], "{relays:?}");
    let choice = found.scatter_order();
    assert!(choice.predicted_ns < choice.tail_first_ns, "{choice}");
}

/// A full flit and half a flit, over a slow link and then a fast one: the full flit has crossed the
/// fast link before the other arrives, which takes half as long there.
#[test]
fn a_short_last_flit_is_not_taken_for_a_full_one() {
    let tree = tree("path:3");
    let mut model = random_model(&mut SplitMix64::new(1), tree.len());
    model.edges = [1.0, 16.0, 1.0].map(edge).to_vec();
    let [_, found] = searched(&tree, &[0, 0, 1_500], &model);
    let choice = found.scatter_order();
    assert_eq!((choice.predicted_ns, choice.bound_ns), (24_500, 24_500));
}

/// Returns a tree, lengths in flits, and the sources or destinations in some order.
fn given(random: &mut SplitMix64) -> (Arc<Tree>, Vec<u64>, Vec<PeId>) {
    let pes = 3 + random.below(9);
    let tree = random_tree(random, pes);
    let flits = random_lengths(random, pes, 5);
    let mut order: Vec<PeId> = tree.below_root().collect();
    order.retain(|pe| flits[pe.index()] > 0);
    order.sort_by_cached_key(|_| random.below(u64::MAX));
    (tree, flits, order)
}

fn typed(order: &[PeId]) -> MessageOrder {
    let numbers: Vec<String> = order.iter().map(|pe| pe.0.to_string()).collect();
    let text = format!("given:{}", numbers.join(","));
    MessageOrder::parse(&text, &[]).expect("it is an order")
}

/// On equal links a round takes as long as its plan in steps, in any order.
#[test]
fn a_scatter_in_a_given_order_is_predicted_as_it_is_planned() {
    let mut random = SplitMix64::new(11);
    let mut slower = 0;
    for _ in 0..60 {
        let (tree, flits, order) = given(&mut random);
        if order.is_empty() {
            continue;
        }
        let model = Model {
            edges: vec![edge(1.0); tree.len()],
            ports: Ports::Single,
            ..random_model(&mut random, tree.len())
        };
        let bytes: Vec<u64> = flits.iter().map(|it| it * u64::from(FLIT_BYTES)).collect();
        let scatter = (&tree, Algorithm::FARTHEST_FIRST);
        let [_, found] = in_order(scatter, &bytes, &model, &typed(&order));
        let sent: Vec<PeId> = found.schedules[0].sends.iter().map(|m| m.id.pe()).collect();
        assert_eq!(sent, order);
        let choice = found.scatter_order();
        let steps = |order: &[PeId]| plan_scatter(&tree, &flits, order).time_steps;
        let planned = [steps(&order), steps(&rules::farthest_first(&tree, &flits))];
        let planned = planned.map(|steps| steps * u64::from(FLIT_BYTES));
        assert_eq!([choice.predicted_ns, choice.farthest_first_ns], planned);
        slower += u32::from(planned[0] > planned[1]);
    }
    assert!(slower > 20, "{slower}");
}

/// An order for a tree that was repaired may name PEs that are absent, and an impossible one is left out.
#[test]
fn a_gather_keeps_a_given_order_where_it_can() {
    let whole = tree("parents:0,1,1,0");
    let tree = Arc::new(whole.without(&[PeId(3)], |_, _| true).tree);
    let bytes = [0, 5_000, 5_000, 0, 5_000];
    let model = random_model(&mut SplitMix64::new(3), tree.len());
    let gathered = |order: &[u32]| {
        let operation = Algorithm::CERTIFICATION_PIPELINED;
        let order: Vec<PeId> = order.iter().copied().map(PeId).collect();
        let [_, found] = in_order((&tree, operation), &bytes, &model, &typed(&order));
        found
    };
    for order in [[4, 1, 3, 2], [1, 2, 3, 4]] {
        let found = gathered(&order);
        let choice = found.decisions.order;
        assert!(matches!(choice, Some(OrderChoice::Gather { .. })));
        let arrivals = order.iter().filter(|pe| **pe != 3);
        let arrivals = arrivals.map(|pe| found.prediction.arrivals_ns[*pe as usize]);
        let arrivals: Vec<Option<u64>> = arrivals.collect();
        assert!(arrivals[0].is_some() && arrivals.is_sorted());
    }
    assert_eq!(gathered(&[2, 1, 3, 4]).decisions.order, None);
}
