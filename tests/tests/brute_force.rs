//! Scattering compared with brute force: every tree of up to 6 PEs, lengths from {0, 1, 2, 5},
//! every order of the nonnull messages.

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::plan::plan;
use flitcast_plan::schedule::scatter;
use flitcast_proto::{PeId, Tree};
use flitcast_tests::every;

/// Returns the time of a scatter in the given order, counted flit by flit: P0 sends one in every step,
/// and each is `depth` steps on its way, the first of them the one in which it was sent.
fn steps_in_order(tree: &Tree, flits: &[u64], order: &[PeId]) -> u64 {
    let mut step = 0;
    let mut last_arrival = 0;
    for &pe in order {
        for _ in 0..flits[pe.index()] {
            step += 1;
            last_arrival = last_arrival.max(step + u64::from(tree.depth(pe)) - 1);
        }
    }
    last_arrival
}

#[test]
fn farthest_first_is_as_fast_as_the_best_of_all_orders() {
    let mut cases = 0;
    for pes in 1..=6 {
        for tree in every::trees(pes) {
            for flits in every::flits(pes) {
                let mut nonnull: Vec<PeId> =
                    tree.pes().filter(|pe| flits[pe.index()] > 0).collect();
                let mut best = u64::MAX;
                every::for_each_order(&mut nonnull, &mut |order| {
                    best = best.min(steps_in_order(&tree, &flits, order));
                });
                let case = || format!("{tree:?}, {flits:?}");
                assert_eq!(scatter::optimal_steps(&tree, &flits), best, "{}", case());
                let plan = plan(&tree, Algorithm::FARTHEST_FIRST, &flits);
                assert_eq!(plan.time_steps, best, "{}", case());
                assert_eq!(plan.lower_bound_steps, best, "{}", case());
                cases += 1;
            }
        }
    }
    // 1 + 1*4 + 2*16 + 6*64 + 24*256 + 120*1024: none was left out.
    assert_eq!(cases, 129_445);
}
