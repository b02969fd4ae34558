use flitcast_proto::seeded::SplitMix64;

use super::*;
use crate::tests::{of_pairs, tree};

/// One flit for each pair on complete binary trees, with a port for each neighbour and with one
/// port.
#[test]
fn one_flit_each_takes_what_the_table_says() {
    for (pes, expected) in [
        (3, [2, 4]),
        (7, [12, 24]),
        (15, [56, 128]),
        (31, [240, 576]),
        (63, [992, 2432]),
    ] {
        let (tree, flits) = (tree(&format!("kary:2:{pes}")), of_pairs(pes, || 1));
        let many = least_steps_of_all_ports(&tree, &flits);
        assert_eq!([many, least_steps(&tree, &flits)], expected, "{pes} PEs");
        let plans = [all_ports(&tree, &flits), one_port(&tree, &flits)];
        for plan in &plans {
            let planned: u64 = plan.hops.iter().map(|hop| hop.flits).sum();
            assert_eq!(planned, crossings(&tree, &flits), "{pes} PEs");
        }
        let [many, single] = plans.map(|plan| plan.time_steps);
        assert_eq!(many, expected[0], "{pes} PEs");
        match pes {
            // The table has only the bound for 63 PEs.
            63 => assert!(single * 100 <= expected[1] * 102, "{single} steps"),
            _ => assert_eq!(single, expected[1], "{pes} PEs"),
        }
    }
}

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
