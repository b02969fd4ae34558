//! `flitcast compare` of broadcasts, exchanges, and gossip on trees: its figures agree with
//! those of `flitcast plan`. `pins.txt` has its tables.

use flitcast_proto::seeded::SplitMix64;
use flitcast_tests::{parsed, printed, rows};
use serde_json::Value;

use super::replay::{list, number, planned_of};

/// Every row is the plan of the same name, and one of those that take the fewest steps is marked.
#[test]
fn rows_are_what_is_planned() {
    let mut random = SplitMix64::new(3);
    let check = |operation: &str, line: &str| {
        let comparison = parsed(&format!("compare {operation} {line} --format json"));
        let rows = list(&comparison, "results");
        for row in rows {
            let algorithm = row["algorithm"].as_str().expect("a name");
            // An algorithm that builds no tree uses the named one.
            let tree = row["tree"].as_str().expect("a name");
            let spanning = tree.rsplit_once(" root 0 ").map(|(_, kind)| kind);
            let spanning = spanning.map(|kind| kind.split(' ').next().unwrap_or(kind));
            let spanning = spanning.map_or(String::new(), |kind| format!("--spanning {kind}"));
            let more = format!("{line} --algorithm {algorithm} {spanning}");
            let plan = planned_of(operation, &more);
            for figure in ["time_steps", "kept_flits"] {
                assert_eq!(row[figure], plan[figure], "{operation} {more}");
            }
            let over = row["over_bound"].as_f64().expect("a ratio");
            assert!(over >= 1.0, "{comparison}");
        }
        let fewest = rows.iter().map(|row| number(row, "time_steps")).min();
        let best: Vec<&Value> = rows.iter().filter(|row| row["best"] == true).collect();
        assert_eq!(best.len(), 1, "{comparison}");
        assert_eq!(Some(number(best[0], "time_steps")), fewest);
        assert!(fewest >= comparison["bound_steps"].as_u64());
    };
    for seed in 0..6 {
        let (pes, flits) = (2 + random.below(12), 1 + random.below(9));
        let (from, each) = (random.below(pes), format!("--lengths each:{flits}"));
        let rest = format!("--size {flits} --from {from}");
        let tree = format!("--tree random:{pes}:{seed}");
        let network = format!("--network complete:{pes}");
        check("broadcast", &format!("{tree} {rest}"));
        check("broadcast", &format!("{tree} {rest} --ports multi"));
        check("broadcast", &format!("{network} {rest}"));
        check("exchange", &format!("{tree} {each}"));
        check("exchange", &format!("{network} {each}"));
        check("gossip", &format!("{tree} --lengths uniform:0..5:{seed}"));
        check("gossip", &format!("{tree} --lengths equal:1 --ports multi"));
    }
    check("broadcast", "--network mesh:3x4 --size 7");
    check("broadcast", "--network hypercube:4 --size 20 --from 5");
    check("exchange", "--network torus:3x4 --lengths each:2");
}

/// Algorithms that are computed flit by flit, or whose rounds are, are omitted if that is too much.
#[test]
fn many_pes_are_compared() {
    for [line, row, why] in rows(
        "
        broadcast --tree kary:2:1000000 --size 100 | *  kary:2:1000000  rounds            235 | urgent, circulant and hypercube are left out
        exchange --network complete:600 --lengths each:1 | *  complete:600  shifts       599 | at most 512 PEs
    ",
    ) {
        let table = printed(&format!("compare {line}"));
        assert!(table.contains(row) && table.contains(why), "{table}");
    }
}
