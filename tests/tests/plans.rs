//! The planner compared with the simulator: every flit and every control item, step by step, on
//! random trees and lengths.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::gather_order::set_order;
use flitcast_plan::algorithms::plan::{Plan, plan, plan_gather, plan_scatter};
use flitcast_plan::cost::Model;
use flitcast_plan::predict::predict;
use flitcast_plan::schedule::scatter;
use flitcast_plan::sim::{self, Simulated};
use flitcast_plan::timing::Timing;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::tree::TreeSpec;
use flitcast_proto::{PeId, Tree};
use flitcast_tests::random::{path_and_flits, repaired, tree_and_flits, walk};
use proptest::prelude::*;

fn assert_agree(plan: &Plan, run: &Simulated) {
    let mut crossings = run.crossings.clone();
    crossings.sort_by_key(|crossing| (crossing.step, crossing.from, crossing.to));
    assert_eq!(plan.crossings(), crossings);
    assert_eq!(plan.crossing_count(), crossings.len() as u64);
    assert_eq!(plan.time_steps, run.time_steps());
    for message in &plan.messages {
        assert_eq!(message.arrival_step, run.arrival_steps[message.pe.index()]);
    }
    assert!(plan.lower_bound_steps <= plan.time_steps, "{plan:?}");
    let upper = plan.upper_bound().unwrap();
    assert!(plan.time_steps <= upper.steps, "{upper:?} {plan:?}");
    if plan.operation == Algorithm::SHOULDER_TAP {
        assert_eq!(plan.time_steps, upper.steps, "{plan:?}");
    }
}

/// Checks that every message arrives, in the simulator and in the prediction.
fn assert_all_arrive(tree: &Arc<Tree>, operation: Algorithm, flits: &[u64]) {
    let schedules = operation.schedules(tree, flits, &Timing::LOCK_STEP);
    let predicted = predict(tree, &schedules, &Model::unit(tree.len())).unwrap();
    let run = sim::run_schedules(tree, schedules).unwrap();
    for (pe, &flits) in tree.ids().zip(flits) {
        let arrives = run.arrival_steps[pe.index()] > 0;
        assert_eq!(arrives, flits > 0, "{pe}, simulated");
        let arrives = predicted.arrivals_ns[pe.index()].is_some();
        assert_eq!(arrives, flits > 0, "{pe}, predicted");
    }
}

fn assert_simulates(tree: &Arc<Tree>, operation: Algorithm, flits: &[u64]) {
    let run = sim::run(tree, operation, flits).unwrap();
    assert_agree(&plan(tree, operation, flits), &run);
}

/// Checks a gather in a given order: simulated as planned, and predicted in the same times, P0 takes the
/// messages in this order.
fn keeps_order(tree: &Arc<Tree>, operation: Algorithm, flits: &[u64], order: &[PeId]) {
    let plan = plan_gather(tree, operation, flits, order).unwrap();
    let mut schedules = operation.schedules(tree, flits, &Timing::LOCK_STEP);
    set_order(tree, &mut schedules, order).unwrap();
    if operation != Algorithm::CERTIFICATION_PARALLEL {
        let predicted = predict(tree, &schedules, &Model::unit(tree.len())).unwrap();
        for message in &plan.messages {
            let arrival_ns = predicted.arrivals_ns[message.pe.index()];
            assert_eq!(arrival_ns, Some(message.arrival_step));
        }
    }
    let run = sim::run_schedules(tree, schedules).unwrap();
    assert_agree(&plan, &run);
    let arrivals = order.iter().map(|pe| run.arrival_steps[pe.index()]);
    let arrivals: Vec<u64> = arrivals.collect();
    let is_in_order = arrivals.is_sorted_by(|one, next| one < next);
    assert!(is_in_order, "{order:?} {arrivals:?}");
}

/// The worst case of each bound, and of the formula that the paper prints instead: one flit at the end
/// of a path.
#[test]
fn a_flit_at_the_end_of_a_path_takes_as_long_as_the_upper_bound() {
    let tree: TreeSpec = "path:6".parse().unwrap();
    let tree = Arc::new(tree.build().unwrap());
    let flits = [0, 0, 0, 0, 0, 1];
    let of = |operation| {
        let plan = plan(&tree, operation, &flits);
        let upper = plan.upper_bound().unwrap();
        (plan.time_steps, upper.steps, upper.theorem)
    };
    assert_eq!(of(Algorithm::FARTHEST_FIRST), (5, 5, "Proposition 1"));
    assert_eq!(of(Algorithm::SHOULDER_TAP), (10, 10, "Theorem 2"));
    for sync in [Sync::Serial, Sync::Pipelined, Sync::Parallel] {
        // 2B + C + M is 16 at most: token, certificates and orders take 5 steps each.
        assert_eq!(of(Algorithm::certification(sync)), (20, 20, "Theorem 3"));
    }
    // Figure 4.
    let flits = [0, 2, 3, 0, 2, 1];
    let plan = plan(&tree, Algorithm::CERTIFICATION_SERIAL, &flits);
    let upper = plan.upper_bound().unwrap();
    assert_eq!((plan.time_steps, upper.steps), (21, 27));
}

/// The orders to twelve leaves take no port from the flits that their parent forwards.
#[test]
fn a_bound_is_none_of_a_port_that_orders_do_not_use() {
    let parents = (0..14).map(|pe: u32| match pe {
        0 => None,
        1 => Some(PeId(0)),
        _ => Some(PeId(1)),
    });
    let tree = Arc::new(Tree::from_parents(parents.collect()).unwrap());
    let flits: Vec<u64> = (0..14).map(|pe| u64::from(pe > 1)).collect();
    for sync in [Sync::Serial, Sync::Pipelined, Sync::Parallel] {
        assert_simulates(&tree, Algorithm::certification(sync), &flits);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn a_scatter_is_simulated_as_planned((tree, flits) in tree_and_flits(30)) {
        assert_simulates(&tree, Algorithm::FARTHEST_FIRST, &flits);
    }

    #[test]
    fn a_scatter_in_any_order_is_simulated_as_planned((tree, flits) in tree_and_flits(15), seed in any::<u64>()) {
        let mut order = scatter::farthest_first(&tree, &flits);
        order.sort_by_key(|pe| (u64::from(pe.0) + 1).wrapping_mul(seed | 1));
        let mut schedules = Algorithm::FARTHEST_FIRST.schedules(&tree, &flits, &Timing::LOCK_STEP);
        schedules[0].sends.sort_by_key(|m| order.iter().position(|&pe: &PeId| pe == m.pe()));
        let run = sim::run_schedules(&tree, schedules).unwrap();
        assert_agree(&plan_scatter(&tree, &flits, &order), &run);
    }

    #[test]
    fn shoulder_tap_is_simulated_as_planned((tree, flits) in path_and_flits(30)) {
        assert_simulates(&tree, Algorithm::SHOULDER_TAP, &flits);
    }

    #[test]
    fn certification_is_simulated_as_planned((tree, flits) in tree_and_flits(30)) {
        for sync in [Sync::Serial, Sync::Pipelined, Sync::Parallel] {
            assert_simulates(&tree, Algorithm::certification(sync), &flits);
        }
    }

    #[test]
    fn a_gather_in_a_given_order_is_simulated_as_planned((tree, flits) in tree_and_flits(25), seed in any::<u64>()) {
        let order = walk(&tree, &flits, seed);
        for sync in [Sync::Serial, Sync::Pipelined, Sync::Parallel] {
            keeps_order(&tree, Algorithm::certification(sync), &flits, &order);
        }
    }

    #[test]
    fn a_tree_that_lacks_pes_is_a_tree_like_any_other((tree, flits) in repaired(tree_and_flits(30))) {
        assert_all_arrive(&tree, Algorithm::FARTHEST_FIRST, &flits);
        assert_simulates(&tree, Algorithm::FARTHEST_FIRST, &flits);
        for sync in [Sync::Serial, Sync::Pipelined, Sync::Parallel] {
            let operation = Algorithm::certification(sync);
            assert_all_arrive(&tree, operation, &flits);
            assert_simulates(&tree, operation, &flits);
        }
    }

    #[test]
    fn a_path_with_gaps_is_a_tree_like_any_other((tree, flits) in repaired(path_and_flits(30))) {
        assert!(tree.is_path());
        assert_all_arrive(&tree, Algorithm::SHOULDER_TAP, &flits);
        assert_simulates(&tree, Algorithm::SHOULDER_TAP, &flits);
    }
}
