//! Plans of broadcasts, and of scatters from any PE, replayed flit by flit.

use flitcast_proto::seeded::SplitMix64;
use flitcast_tests::{numbers, rows};
use serde_json::Value;

use super::replay::{number, planned_of, replay};

#[track_caller]
fn planned(line: &str) -> Value {
    planned_of("broadcast", line)
}

#[test]
fn many_flits_to_64_hosts_take_the_steps_in_the_table() {
    for [what, expected] in rows(
        "
        --network complete:64 --algorithm path | 63 72 162 1062
        --tree kary:2:64 | 10 28 208 2008
        --tree star:64 | 63 630 6300 63000
        --network complete:64 --algorithm hypercube | 7 16 106 1006
        --network hypercube:6 --algorithm hypercube --from 5 | 7 16 106 1006
        --network complete:64 --algorithm circulant | 6 15 105 1005
        --network complete:64 --from P63 | 6 15 105 1005
    ",
    ) {
        for (flits, steps) in [1, 10, 100, 1000].into_iter().zip(numbers(expected)) {
            let plan = planned(&format!("{what} --size {flits}"));
            assert_eq!(number(&plan, "time_steps"), steps, "{what}, {flits}");
            if flits <= 10 {
                replay(&plan);
            }
        }
    }
}

#[test]
fn plans_on_random_trees_keep_the_rules() {
    let mut random = SplitMix64::new(7);
    let mut below = |n: u64| random.next_u64() % n;
    let (mut urgent, mut bounds) = (0, 0);
    for seed in 0..25 {
        let (pes, flits) = (2 + below(15), 1 + below(9));
        let from = below(pes);
        let tree = format!("--tree random:{pes}:{seed} --from {from} --size {flits}");
        for algorithm in ["auto", "rounds", "child-by-child"] {
            replay(&planned(&format!("{tree} --algorithm {algorithm}")));
        }
        replay(&planned(&format!("{tree} --ports multi")));
        let plan = planned(&format!("{tree} --algorithm urgent"));
        urgent += replay(&plan);
        bounds += number(&plan, "bound_steps");
        let arity = 1 + below(4);
        let all = format!("--network complete:{pes} --from {from} --size {flits}");
        for algorithm in [
            "auto".to_owned(),
            "path".to_owned(),
            format!("kary:{arity}"),
        ] {
            replay(&planned(&format!("{all} --algorithm {algorithm}")));
        }
    }
    // 349 steps; the lower bound is 347.
    assert!(urgent * 100 <= bounds * 101, "{urgent} and {bounds} steps");
}

#[test]
fn a_million_pes_are_planned() {
    let line = "--tree kary:2:1000000 --size 100 --from P999999 --algorithm rounds --summary";
    let plan = planned(line);
    assert_eq!(number(&plan, "pes"), 1_000_000);
    assert!(number(&plan, "time_steps") > 200);
}

#[test]
fn scatters_from_any_pe_keep_the_rules() {
    let mut random = SplitMix64::new(11);
    let mut below = |n: u64| random.next_u64() % n;
    for seed in 0..20 {
        let (pes, from) = (2 + below(14), below(2));
        let rest =
            format!("--tree random:{pes}:{seed} --lengths uniform:0..4:{seed} --from {from}");
        let single = replay(&planned_of("scatter", &rest));
        let multi = replay(&planned_of("scatter", &format!("{rest} --ports multi")));
        assert!(multi <= single);
    }
}
