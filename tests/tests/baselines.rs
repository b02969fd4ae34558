//! Baselines in lock step and in real runs: every message arrives, and the buffered flits of a PE
//! are reported.

use std::sync::Arc;

use flitcast_plan::baseline::{BaselineModel, adaptive_tree, binomial_tree, flow};
use flitcast_plan::cost::Model;
use flitcast_plan::predict::predict;
use flitcast_plan::timing::Timing;
use flitcast_plan::trace::{Crossing, Item};
use flitcast_plan::{Algorithm, sim};
use flitcast_proto::items::Control;
use flitcast_proto::tree::TreeSpec;
use flitcast_proto::{PeId, Tree};
use flitcast_tests::random::tree_and_flits;
use flitcast_tests::{reported, rows};
use proptest::prelude::*;

/// Runs in virtual time, where early items wait; in lock step they would collide.
fn assert_arrives(tree: &Arc<Tree>, operation: Algorithm, flits: &[u64]) {
    let schedules = operation.schedules(tree, flits, &Timing::LOCK_STEP);
    let run = predict(tree, &schedules, &Model::unit(tree.len())).unwrap();
    for (arrival, flits) in run.arrivals_ns.iter().zip(flits) {
        assert_eq!(arrival.is_some(), *flits > 0, "{operation:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn combining_delivers_on_any_tree((tree, flits) in tree_and_flits(24)) {
        assert_arrives(&tree, Algorithm::COMBINING_GATHER, &flits);
        assert_arrives(&tree, Algorithm::COMBINING_SCATTER, &flits);
    }

    #[test]
    fn the_adaptive_tree_spans_all_pes((_, flits) in tree_and_flits(40)) {
        let tree = Arc::new(adaptive_tree(&flits));
        prop_assert_eq!(tree.len(), flits.len());
        assert_arrives(&tree, Algorithm::COMBINING_GATHER, &flits);
        assert_arrives(&tree, Algorithm::COMBINING_SCATTER, &flits);
    }

    #[test]
    fn a_linear_gather_asks_one_pe_after_the_other((_, flits) in tree_and_flits(20)) {
        let parents = (0..flits.len()).map(|i| (i > 0).then_some(PeId::ROOT));
        let star = Arc::new(Tree::from_parents(parents.collect()).unwrap());
        let run = sim::run(&star, Algorithm::linear_gather(1), &flits).unwrap();
        let planned = flow(&star, &BaselineModel::Window(1).gather(&star, &flits));
        prop_assert_eq!(run.time_steps(), planned.time_steps);
        assert_arrives(&star, Algorithm::linear_gather(4), &flits);
    }
}

/// On its own tree a real binomial gather takes the steps of `compare`, plus those of the token
/// that begins it.
#[test]
fn a_binomial_gather_takes_what_is_compared() {
    let tree = Arc::new(binomial_tree(8));
    let spec: TreeSpec = "binomial:8".parse().unwrap();
    assert_eq!(*tree, spec.build().unwrap());
    let flits = [0, 3, 3, 3, 3, 3, 3, 3];
    let run = sim::run(&tree, Algorithm::COMBINING_GATHER, &flits).unwrap();
    let planned = flow(&tree, &BaselineModel::Binomial.gather(&tree, &flits));
    let is_token = |crossing: &&Crossing| crossing.item == Item::Control(Control::Token);
    let tokens = run.crossings.iter().filter(is_token);
    let begun = tokens.map(|crossing| crossing.step).max().unwrap();
    let time = run.time_steps();
    let expected = planned.time_steps..=planned.time_steps + begun;
    assert!(expected.contains(&time), "{time}");
}

#[test]
fn baselines_run_for_real() {
    for [operation, algorithms] in rows(
        "
        gather | linear window binomial adaptive
        scatter | linear binomial adaptive
    ",
    ) {
        let all = [1, 2, 3, 5, 8, 16].into_iter();
        let all = all.flat_map(|pes| algorithms.split(' ').map(move |it| (pes, it)));
        for (pes, algorithm) in all {
            let lengths = format!("--lengths uniform:0..20000:{pes} --flit-size 4KiB --rounds 2");
            let site = format!("--network complete:{pes} --algorithm {algorithm}");
            let report = reported(&format!("{operation} {site} {lengths}"));
            assert_eq!(report.value("/algorithm"), algorithm);
            for pe in report.list("/pes") {
                let arrived = !pe["measured_us"].is_null();
                assert_eq!(arrived, pe["bytes"].as_u64() > Some(0), "{site}: {pe}");
            }
        }
    }
}

/// Four PEs: P3's message stops at P2 on the binomial tree, which holds all of it.
#[test]
fn the_memory_of_a_combining_pe_is_reported() {
    let line = "gather --network complete:4 --algorithm binomial --lengths 0,0,64KiB";
    let report = reported(&format!("{line} --flit-size 4KiB"));
    assert_eq!(report.value("/parents").to_string(), "[null,0,0,2]");
    assert_eq!(report.number("/round/peak_buffered_flits"), 16);
}
