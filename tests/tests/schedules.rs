//! Properties of the schedules on random trees and lengths, including null messages: the state
//! machines in lock step are compared with formulas that are derived independently here. The
//! simulator itself fails on any collision, torn message, early send or stall.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::schedule::scatter;
use flitcast_plan::sim;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::shoulder_tap;
use flitcast_proto::{PeId, Tree};
use flitcast_tests::random::{path_and_flits, tree_and_flits};
use proptest::prelude::*;

/// Returns the steps of the whole round by sections 4 and 5 of the specification: until P0 has the
/// last certificate, then its streams one after the other.
fn certification_steps(tree: &Tree, flits: &[u64], sync: Sync) -> u64 {
    fn b(tree: &Tree, pe: PeId) -> u64 {
        let children = (1..).zip(token_order(tree, pe));
        let steps = children.map(|(k, c)| k + b(tree, c));
        steps.max().unwrap_or(0)
    }
    fn token_order(tree: &Tree, pe: PeId) -> Vec<PeId> {
        let mut children = tree.children(pe).to_vec();
        children.sort_by_key(|&c| (std::cmp::Reverse(b(tree, c)), c));
        children
    }
    /// Returns (place, c, n) of the children that get an order.
    fn promises(tree: &Tree, flits: &[u64], sync: Sync, pe: PeId) -> Vec<(u64, u64, u64)> {
        let order = match sync {
            Sync::Serial | Sync::Parallel | Sync::MultiPort | Sync::Known => {
                tree.children(pe).to_vec()
            }
            Sync::Pipelined => token_order(tree, pe),
        };
        let certificates = order.iter().map(|&c| certificate(tree, flits, sync, c));
        let ordered = certificates.filter(|&(_, n)| sync == Sync::Serial || n > 0);
        let placed = (1..).zip(ordered).map(|(place, (c, n))| match sync {
            Sync::Parallel | Sync::MultiPort => (1, c, n),
            Sync::Serial | Sync::Pipelined | Sync::Known => (place, c, n),
        });
        placed.collect()
    }
    fn certificate(tree: &Tree, flits: &[u64], sync: Sync, pe: PeId) -> (u64, u64) {
        let mut promised = promises(tree, flits, sync, pe);
        let orders = match sync {
            Sync::MultiPort => 0,
            Sync::Parallel => promised.len().min(1),
            Sync::Serial | Sync::Pipelined | Sync::Known => promised.len(),
        } as u64;
        let mut lag = orders + 1;
        let mut off = flits[pe.index()];
        let wait = |place: u64| if sync == Sync::Serial { orders } else { place };
        promised.sort_by_key(|&(place, c, _)| wait(place) + c);
        for (place, c, n) in promised {
            if n > 0 {
                lag = lag.max((wait(place) + 1 + c).saturating_sub(off));
                off += n;
            }
        }
        (lag, off)
    }
    let certified = match sync {
        Sync::Serial => 2 * (tree.len() as u64 - 1),
        Sync::Pipelined => 2 * b(tree, PeId::ROOT),
        Sync::Known => 0,
        Sync::Parallel | Sync::MultiPort => {
            let depths = tree.pes().map(|pe| u64::from(tree.depth(pe)));
            2 * depths.max().unwrap()
        }
    };
    let mut streams = promises(tree, flits, sync, PeId::ROOT);
    streams.retain(|&(_, _, n)| n > 0);
    streams.sort_by_key(|&(place, c, _)| place + c);
    // With a port of P0 for each child, no stream waits for another one.
    let after = |busy: u64| if sync == Sync::MultiPort { 0 } else { busy + 1 };
    let busy = streams.iter().fold(0, |busy, &(place, c, n)| {
        busy.max((place + c).max(after(busy)) + n - 1)
    });
    if busy == 0 { 0 } else { certified + busy }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn scatter_takes_the_closed_form((tree, flits) in tree_and_flits(40)) {
        let run = sim::run(&tree, Algorithm::FARTHEST_FIRST, &flits).unwrap();
        prop_assert_eq!(run.time_steps(), scatter::optimal_steps(&tree, &flits));
    }

    #[test]
    fn shoulder_tap_meets_bound_7((tree, flits) in path_and_flits(30)) {
        let run = sim::run(&tree, Algorithm::SHOULDER_TAP, &flits).unwrap();
        let along: Vec<u64> = tree.top_down().iter().map(|pe| flits[pe.index()]).collect();
        prop_assert_eq!(run.time_steps(), shoulder_tap::bound_steps(&along));
    }

    #[test]
    fn certification_takes_the_time_in_sections_4_and_5((tree, flits) in tree_and_flits(30)) {
        for sync in [Sync::Serial, Sync::Pipelined, Sync::Parallel] {
            let run = sim::run(&tree, Algorithm::certification(sync), &flits).unwrap();
                prop_assert_eq!(run.time_steps(), certification_steps(&tree, &flits, sync));
        }
    }

    /// P0 receives a flit in each step from the second on.
    #[test]
    fn orders_on_a_star_take_a_step_more_than_the_flits((tree, flits) in tree_and_flits(30)) {
        let parents = tree.ids().map(|pe| (pe != PeId::ROOT).then_some(PeId::ROOT));
        let star = Arc::new(Tree::from_parents(parents.collect()).unwrap());
        let run = sim::run(&star, Algorithm::GATHER_BY_ORDERS, &flits).unwrap();
        let all: u64 = flits.iter().sum();
        prop_assert_eq!(run.time_steps(), if all == 0 { 0 } else { 1 + all });
        prop_assert_eq!(run.time_steps(), certification_steps(&star, &flits, Sync::Known));
        let bound = Algorithm::GATHER_BY_ORDERS.least_steps(&star, &flits);
        prop_assert_eq!(run.time_steps(), bound);
    }
}

#[test]
fn bound_7_on_the_papers_examples() {
    assert_eq!(shoulder_tap::bound_steps(&[0, 2, 3, 0, 2, 1]), 11);
    assert_eq!(shoulder_tap::bound_steps(&[0, 9, 0, 1, 0, 1]), 13);
}
