use flitcast_proto::seeded::SplitMix64;

use super::*;
use crate::tests::{of_pairs, tree};

#[test]
fn one_flit_each_is_on_the_bound_on_random_trees() {
    let mut random = SplitMix64::new(5);
    for seed in 0..60 {
        let pes = 2 + random.below(20);
        let (tree, flits) = (tree(&format!("random:{pes}:{seed}")), of_pairs(pes, || 1));
        let bounds = [
            least_steps_of_all_ports(&tree, &flits),
            least_steps(&tree, &flits),
        ];
        let plans = [all_ports(&tree, &flits), one_port(&tree, &flits)];
        assert_eq!(plans.map(|plan| plan.time_steps), bounds, "{tree:?}");
    }
}

#[test]
fn nothing_for_anybody_takes_no_step() {
    for (spec, pes) in [("path:1", 1), ("path:3", 3)] {
        let (tree, flits) = (tree(spec), of_pairs(pes, || 0));
        assert_eq!(all_ports(&tree, &flits), Timetable::default());
        assert_eq!(one_port(&tree, &flits), Timetable::default());
    }
}
