//! The planner compared with the simulator: every flit and every control item, step by step, on
//! random trees and lengths.

use std::sync::Arc;

use flitcast_proto::cost::Model;
use flitcast_proto::ops::plan::{Plan, plan, plan_scatter};
use flitcast_proto::ops::{Brief, Operation};
use flitcast_proto::predict::predict;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::pace::Timing;
use flitcast_proto::schedule::scatter;
use flitcast_proto::sim::{self, Simulated};
use flitcast_proto::{PeId, Tree};
use flitcast_tests::random::{
    path_and_flits, repaired_path_and_flits, repaired_tree_and_flits, tree_and_flits,
};
use proptest::prelude::*;

fn assert_agree(plan: &Plan, run: &Simulated) {
    let mut crossings = run.crossings.clone();
    crossings.sort_by_key(|crossing| (crossing.step, crossing.from, crossing.to));
    assert_eq!(plan.crossings(), crossings);
    assert_eq!(plan.crossing_count(), crossings.len() as u64);
    assert_eq!(plan.time_steps, run.time_steps());
    let first = run.first_steps();
    for message in &plan.messages {
        assert_eq!(message.first_step, first[message.pe.index()]);
        assert_eq!(message.arrival_step, run.arrival_steps[message.pe.index()]);
    }
    assert!(plan.lower_bound_steps <= plan.time_steps, "{plan:?}");
}

/// Checks that every message arrives, in the simulator and in the prediction.
fn assert_all_arrive(tree: &Arc<Tree>, operation: Operation, flits: &[u64]) {
    let briefs = Brief::all(tree, operation, flits, &Timing::LOCK_STEP);
    let predicted = predict(tree, &briefs, &Model::unit(tree.len())).unwrap();
    let run = sim::run_briefs(tree, briefs).unwrap();
    for (pe, &flits) in tree.ids().zip(flits) {
        let arrives = run.arrival_steps[pe.index()] > 0;
        assert_eq!(arrives, flits > 0, "{pe}, simulated");
        let arrives = predicted.arrivals_ns[pe.index()].is_some();
        assert_eq!(arrives, flits > 0, "{pe}, predicted");
    }
}

fn assert_simulates(tree: &Arc<Tree>, operation: Operation, flits: &[u64]) {
    let run = sim::run(tree, operation, flits).unwrap();
    assert_agree(&plan(tree, operation, flits), &run);
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
        assert_simulates(&tree, Operation::Certification(sync), &flits);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn a_scatter_is_simulated_as_planned((tree, flits) in tree_and_flits(30)) {
        assert_simulates(&tree, Operation::Scatter, &flits);
    }

    #[test]
    fn so_is_one_in_any_order((tree, flits) in tree_and_flits(15), seed in any::<u64>()) {
        let mut order = scatter::farthest_first(&tree, &flits);
        order.sort_by_key(|pe| (u64::from(pe.0) + 1).wrapping_mul(seed | 1));
        let mut briefs = Brief::all(&tree, Operation::Scatter, &flits, &Timing::LOCK_STEP);
        briefs[0].sends.sort_by_key(|m| order.iter().position(|&pe: &PeId| pe == m.pe()));
        let run = sim::run_briefs(&tree, briefs).unwrap();
        assert_agree(&plan_scatter(&tree, &flits, &order), &run);
    }

    #[test]
    fn shoulder_tap_is_simulated_as_planned((tree, flits) in path_and_flits(30)) {
        assert_simulates(&tree, Operation::ShoulderTap, &flits);
    }

    #[test]
    fn certification_is_simulated_as_planned((tree, flits) in tree_and_flits(30)) {
        for sync in [Sync::Serial, Sync::Pipelined, Sync::Parallel] {
            assert_simulates(&tree, Operation::Certification(sync), &flits);
        }
    }

    #[test]
    fn a_tree_that_lacks_pes_is_a_tree_like_any_other((tree, flits) in repaired_tree_and_flits(30)) {
        assert_all_arrive(&tree, Operation::Scatter, &flits);
        assert_simulates(&tree, Operation::Scatter, &flits);
        for sync in [Sync::Serial, Sync::Pipelined, Sync::Parallel] {
            let operation = Operation::Certification(sync);
            assert_all_arrive(&tree, operation, &flits);
            assert_simulates(&tree, operation, &flits);
        }
    }

    #[test]
    fn so_is_a_path_with_gaps((tree, flits) in repaired_path_and_flits(30)) {
        assert!(tree.is_path());
        assert_all_arrive(&tree, Operation::ShoulderTap, &flits);
        assert_simulates(&tree, Operation::ShoulderTap, &flits);
    }
}
