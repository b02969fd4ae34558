//! Plans of exchanges, and of gossip on trees, replayed flit by flit.

use flitcast_proto::seeded::SplitMix64;
use flitcast_tests::{refused, scratch};
use serde_json::Value;

use super::replay::{list, number, planned_of, replay};

fn lengths(random: &mut SplitMix64, count: u64, most: u64) -> Vec<u64> {
    (0..count).map(|_| random.below(most + 1)).collect()
}

fn line(numbers: &[u64]) -> String {
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    texts.join(",")
}

#[test]
fn plans_on_random_trees_keep_the_rules() {
    let mut random = SplitMix64::new(7);
    let dir = scratch();
    let (mut gossip, mut gossip_bounds) = (0, 0);
    for seed in 0..25 {
        let pes = 1 + random.below(14);
        let tree = format!("--tree random:{pes}:{seed}");
        let lengths_of_all = line(&lengths(&mut random, pes, [1, 5][seed % 2]));
        let rows = (0..pes as usize).map(|pe| {
            let mut row = lengths(&mut random, pes, [1, 3][seed % 2]);
            row[pe] = 0;
            row
        });
        let rows: Vec<Vec<u64>> = rows.collect();
        let lines: Vec<String> = rows.iter().map(|row| line(row)).collect();
        let file = dir.put("matrix.csv", lines.join("\n"));
        let exchange = format!("--matrix {}", file.display());
        for ports in ["single", "multi"] {
            let line = format!("{tree} --lengths {lengths_of_all} --ports {ports}");
            let plan = planned_of("gossip", &line);
            gossip += replay(&plan);
            gossip_bounds += number(&plan, "bound_steps");
            assert!(ports == "single" || plan["proof"] == "optimal", "{plan}");
            let plan = planned_of("exchange", &format!("{tree} {exchange} --ports {ports}"));
            replay(&plan);
            check_messages(&plan, &rows);
        }
        let around = format!("{tree} --lengths equal:1 --ports multi --algorithm ring-emulation");
        let steps = replay(&planned_of("gossip", &around));
        assert_eq!(steps, (2 * pes).saturating_sub(3), "{pes} PEs");
        for algorithm in ["rounds", "shifts", "auto"] {
            let line = format!("--network complete:{pes} {exchange} --algorithm {algorithm}");
            let plan = planned_of("exchange", &line);
            replay(&plan);
            check_messages(&plan, &rows);
            let is_optimal = plan["proof"] == "optimal";
            assert!(algorithm == "shifts" || is_optimal, "{plan}");
        }
    }
    let is_close = gossip * 100 <= gossip_bounds * 102;
    assert!(is_close, "{gossip} and {gossip_bounds} steps");
}

/// Checks that a plan has the messages of its matrix, numbered by source, then by destination.
#[track_caller]
fn check_messages(plan: &Value, rows: &[Vec<u64>]) {
    let pes = rows.len() as u64;
    let mut planned = vec![vec![0; rows.len()]; rows.len()];
    for message in list(plan, "messages") {
        let (id, source) = (number(message, "id"), number(message, "source"));
        assert_eq!(list(message, "destinations"), [Value::from(id % pes)]);
        assert_eq!(source, id / pes);
        planned[source as usize][(id % pes) as usize] = number(message, "flits");
    }
    assert_eq!(planned, rows);
}

#[test]
fn four_hosts_exchange_by_rounds_in_9_steps_and_by_shifts_in_14() {
    let dir = scratch();
    let file = dir.put("matrix.csv", "0,3,0,5\n1,0,2,2\n4,4,0,1\n0,0,7,0\n");
    for (algorithm, steps) in [("rounds", 9), ("shifts", 14), ("auto", 9)] {
        let file = file.display();
        let line = format!("--network complete:4 --matrix {file} --algorithm {algorithm}");
        assert_eq!(replay(&planned_of("exchange", &line)), steps, "{algorithm}");
    }
    // Among equals, whole messages are as fast.
    let plan = planned_of("exchange", "--network complete:9 --lengths each:4");
    assert_eq!(plan["algorithm"], "shifts");
    assert_eq!(replay(&plan), 32);
}

/// The longer the set-up of a packet, the more messages it carries, and the more PEs forward them.
#[test]
fn a_plan_by_bruck_takes_as_few_packets_as_pay() {
    let line = "--network complete:8 --lengths each:1 --algorithm bruck";
    let plan = planned_of("exchange", line);
    assert_eq!(replay(&plan), 12);
    for (setup, packets) in [("200us", 4 * 8), ("40ms", 3 * 8)] {
        let link = format!("--link setup={setup},rate=10mbit --link-flit 16KiB");
        let plan = planned_of("exchange", &format!("{line} {link}"));
        assert_eq!(number(&plan["on_links"], "packets"), packets, "{setup}");
    }
}

#[test]
fn all_faults_of_a_matrix_are_reported_with_their_cells() {
    let dir = scratch();
    let refused_matrix = |text: &str, expected: &[&str]| {
        let file = dir.put("matrix.csv", text);
        let line = format!("plan exchange --tree path:3 --matrix {}", file.display());
        refused(&line, expected);
    };
    refused_matrix(
        "0,-1,2\n1,3\n1,x,0\n",
        &[
            "matrix.csv:1: row 1, column 2 (P0 to P1): `-1` is not a number of flits",
            "matrix.csv:2: row 2 has 2 columns",
            "matrix.csv:2: row 2, column 2 (P1 to P1): 3 flits of a PE for itself",
            "matrix.csv:3: row 3, column 2 (P2 to P1): `x` is not a number of flits",
        ],
    );
    refused_matrix("0,1\n1,0\n", &["2 rows and columns, but there are 3 PEs"]);
    refused_matrix("", &["no rows"]);
}
