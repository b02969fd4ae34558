//! `flitcast compare` of broadcasts, exchanges, and gossip on trees: its output, which must agree
//! with `flitcast plan`.

use flitcast_proto::seeded::SplitMix64;
use flitcast_tests::{parsed, refused_each, scratch};
use serde_json::Value;

use super::replay::{list, number, planned_of};

#[track_caller]
fn printed(line: &str) -> String {
    flitcast_tests::printed(&format!("compare {line}"))
}

#[test]
fn a_broadcast_on_a_tree_is_compared_with_its_baseline() {
    let expected = "\
broadcast of 10 flits from P0 over 15 PEs, single ports; no way over this tree takes less than 24 steps

     tree       algorithm       steps  over bound  most kept
  *  kary:2:15  rounds             24       1.000          1
     kary:2:15  urgent             24       1.000          1
     kary:2:15  child-by-child     42       1.750         10

  * rounds: 24 steps, which is the bound; no slower than urgent
";
    assert_eq!(printed("broadcast --tree kary:2:15 --size 10"), expected);
}

#[test]
fn a_broadcast_where_all_reach_each_other_has_trees_of_its_own() {
    let expected = "\
broadcast of 10 flits from P0 over 8 PEs, shared ports; no way takes less than 12 steps

     tree                         algorithm       steps  over bound  most kept
     complete:8 root 0 bfs        rounds             70       5.833          0
     complete:8 root 0 bfs        urgent             70       5.833          0
     complete:8 root 0 bfs        child-by-child     70       5.833          0
     complete:8 root 0 broadcast  rounds             30       2.500          1
     complete:8 root 0 broadcast  urgent             30       2.500          4
     complete:8 root 0 broadcast  child-by-child     30       2.500         10
     complete:8, its own          path               16       1.333          1
     complete:8, its own          kary:2             22       1.833          1
     complete:8, its own          kary:3             31       2.583          1
     complete:8, its own          kary:4             40       3.333          1
  *  complete:8, its own          hypercube          13       1.083          1

  * hypercube on complete:8, its own: 13 steps; 3 steps before path on complete:8, its own
";
    let line = "broadcast --network complete:8 --size 10";
    assert_eq!(printed(line), expected);
}

#[test]
fn an_exchange_is_compared() {
    let dir = scratch();
    let matrix = dir.put("matrix.csv", "0,3,0,5\n1,0,2,2\n4,4,0,1\n0,0,7,0\n");
    let matrix = matrix.display();
    let expected = "\
exchange of 29 flits over 4 PEs, shared ports; no way takes less than 9 steps

     tree        algorithm  steps  over bound  most kept
  *  complete:4  rounds         9       1.000          0
     complete:4  shifts        14       1.556          0

  * rounds: 9 steps, which is the bound; 5 steps before shifts
";
    let line = format!("exchange --network complete:4 --matrix {matrix}");
    assert_eq!(printed(&line), expected);
    let expected = "\
exchange of 42 flits over 7 PEs, multi ports; no way over this tree takes less than 12 steps

     tree      algorithm       steps  over bound  most kept
  *  kary:2:7  tree               12       1.000          8
     kary:2:7  ring-emulation     23       1.917         13

  * tree: 12 steps, which is the bound; 11 steps before ring-emulation
";
    let line = "exchange --tree kary:2:7 --lengths each:1 --ports multi";
    assert_eq!(printed(line), expected);
    // More PEs than rounds are computed for.
    let many = printed("exchange --network complete:600 --lengths each:1");
    for told in ["\n  *  complete:600  shifts       599 ", "at most 512 PEs"] {
        assert!(many.contains(told), "{many}");
    }
}

#[test]
fn a_gossip_on_a_tree_is_compared() {
    let expected = "\
gossip of 7 flits over 7 PEs, multi ports; no way over this tree takes less than 6 steps

     tree      algorithm       steps  over bound  most kept
  *  kary:2:7  flood               6       1.000          3
     kary:2:7  ring-emulation     11       1.833          6

  * flood: 6 steps, which is the bound; 5 steps before ring-emulation
";
    let line = "gossip --tree kary:2:7 --lengths equal:1 --ports multi";
    assert_eq!(printed(line), expected);
    let expected = "\
gossip of 10 flits over 7 PEs, single ports; no way over this tree takes less than 22 steps

     tree      algorithm       steps  over bound  most kept
  *  kary:2:7  flood              22       1.000          8
     kary:2:7  discipline:prl     36       1.636          5
     kary:2:7  discipline:plr     36       1.636          6
     kary:2:7  discipline:lrp     38       1.727          6
     kary:2:7  discipline:rlp     37       1.682          5
     kary:2:7  discipline:rpl     37       1.682          5
     kary:2:7  discipline:lpr     36       1.636          6
     kary:2:7  combining:lrp     106       4.818         10

  * flood: 22 steps, which is the bound; 14 steps before discipline:prl
  ring-emulation is left out: it is planned for --ports multi and --lengths equal:1
";
    let line = "gossip --tree kary:2:7 --lengths 1,2,0,1,2,3,1";
    assert_eq!(printed(line), expected);
}

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

/// Algorithms that are computed flit by flit are omitted if that is too much.
#[test]
fn a_million_pes_are_compared() {
    let table = printed("broadcast --tree kary:2:1000000 --size 100");
    let row = "*  kary:2:1000000  rounds            235 ";
    for told in [row, "urgent and hypercube are left out"] {
        assert!(table.contains(told), "{table}");
    }
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    refused_each("compare", "
        broadcast --network complete:8 --tree path:3 --size 3 --ports multi | --tree and --network: use one | a PE has one port for all others
        broadcast --tree path:3 --size 3 --from 3 | there is no P3 among 3 PEs, P0 to P2
        exchange --tree path:0 --lengths 3 | --tree path:0 | write each:F
        exchange --network complete:3 --ports multi | --lengths each:F | a PE has one port for all others
        exchange --tree path:2000 --lengths each:1 | 2000 PEs are too many
        gossip --tree kary:0:1 --ts 3 | --tree kary:0:1 | --lengths: missing | --ts is for a gossip on a --network
        gossip --network ring:2 --lengths 3 --root 3 --ports multi --tl 0 | --root is for trees | --lengths is for trees | --ports is for trees | use at least 3 | more than 0
        gossip | no PEs are given | --lengths
    ");
}
