//! Gossip on networks: every printed plan is replayed by a checker that is independent of the
//! planner; costs, bounds, the paper's tables and invalid input are tested as well.

use std::collections::BTreeSet;

use flitcast_proto::seeded::SplitMix64;
use flitcast_tests::{numbers, parsed, rows};
use serde_json::Value;

use super::replay::{list, number, planned_of};

#[track_caller]
fn planned(line: &str) -> Value {
    planned_of("gossip", line)
}

/// Returns the sides of a network, and whether its lines are rings; `None` for a complete one.
fn sides(network: &str) -> Option<(Vec<u64>, bool)> {
    let (kind, sizes) = network.split_once(':').expect("a size follows");
    let sizes = sizes.split('x').map(|side| side.parse().expect("a number"));
    let closed = kind == "ring" || kind == "torus";
    (kind != "complete").then(|| (sizes.collect(), closed))
}

/// Returns the axis of a hop, and whether it goes upwards; the PEs must be neighbours.
fn hop(sides: &[u64], closed: bool, from: u64, to: u64) -> (usize, bool) {
    let mut stride = 1;
    for (axis, side) in sides.iter().enumerate().rev() {
        let [a, b] = [from, to].map(|pe| pe / stride % side);
        let rest = [from - a * stride, to - b * stride];
        if rest[0] == rest[1] && a != b {
            if a + 1 == b || (closed && b == 0 && a + 1 == *side) {
                return (axis, true);
            }
            let is_below = b + 1 == a || (closed && a == 0 && b + 1 == *side);
            assert!(is_below, "{from} {to}");
            return (axis, false);
        }
        stride *= side;
    }
    panic!("P{from} and P{to} are no neighbours");
}

/// Replays a plan; returns its start-ups, sum of distances and sum of flits.
#[track_caller]
fn replay(plan: &Value) -> [u64; 3] {
    let pes = number(plan, "pes");
    let network = plan["network"].as_str().expect("it has a name");
    let grid = sides(network);
    // The flits of all blocks are numbered; each PE has a set of them.
    let mut first = vec![0; pes as usize];
    let mut total = 0;
    let mut held: Vec<BTreeSet<u64>> = vec![BTreeSet::new(); pes as usize];
    for message in list(plan, "messages") {
        let source = number(message, "source");
        assert_eq!(source, number(message, "id"));
        first[source as usize] = total;
        let end = total + number(message, "flits");
        held[source as usize].extend(total..end);
        total = end;
    }
    let mut cost = [0; 3];
    for step in list(plan, "steps") {
        let mut links = BTreeSet::new();
        let mut arrivals: Vec<(u64, u64)> = Vec::new();
        let (mut longest, mut largest) = (0, 0);
        let (mut sent, mut received) = (vec![0; pes as usize], vec![0; pes as usize]);
        for packet in list(step, "packets") {
            let path = list(packet, "path").iter();
            let path: Vec<u64> = path.filter_map(Value::as_u64).collect();
            let (from, to) = (path[0], path[path.len() - 1]);
            let mut straight = BTreeSet::new();
            if let Some((sides, closed)) = &grid {
                for ends in path.windows(2) {
                    straight.insert(hop(sides, *closed, ends[0], ends[1]));
                    assert!(links.insert(ends.to_vec()), "{ends:?} carries two packets");
                }
            }
            assert!(straight.len() <= 1, "{path:?} is no straight line");
            assert!(grid.is_some() || path.len() == 2);
            let mut flits = 0;
            for piece in list(packet, "pieces") {
                let begin = first[number(piece, "message") as usize] + number(piece, "offset");
                let all = begin..begin + number(piece, "flits");
                assert!(!all.is_empty());
                flits += number(piece, "flits");
                for flit in all {
                    let is_held = held[from as usize].contains(&flit);
                    assert!(is_held, "P{from} lacks what it sends");
                    arrivals.push((to, flit));
                }
            }
            assert!(flits > 0);
            longest = longest.max(path.len() as u64 - 1);
            largest = largest.max(flits);
            sent[from as usize] += flits;
            received[to as usize] += flits;
        }
        for (to, flit) in arrivals {
            assert!(held[to as usize].insert(flit), "P{to} has that already");
        }
        if grid.is_none() {
            let ports = sent.into_iter().chain(received);
            largest = ports.max().expect("there are PEs");
        }
        assert!(longest > 0, "a step without packets");
        cost = [cost[0] + 1, cost[1] + longest, cost[2] + largest];
    }
    for (pe, held) in held.iter().enumerate() {
        assert_eq!(held.len() as u64, total, "P{pe} has not all");
    }
    let keys = ["startups", "distance", "flits"];
    assert_eq!(keys.map(|key| number(&plan["cost"], key)), cost);
    cost
}

/// A fraction as it is printed, as numerator and denominator.
fn fraction(value: &Value) -> (u64, u64) {
    match value.as_str() {
        None => (value.as_u64().expect("a number"), 1),
        Some(text) => {
            let (over, under) = text.split_once('/').expect("a fraction");
            let [over, under] = [over, under].map(|part| part.parse().expect("a number"));
            assert!(under > 1, "{text}");
            (over, under)
        }
    }
}

/// Replays a plan and checks its time, bound, free run and proof at these prices.
fn check(plan: &Value, prices: [u64; 3]) {
    let cost = replay(plan);
    let time: u64 = (0..3).map(|at| cost[at] * prices[at]).sum();
    assert_eq!(fraction(&plan["time"]), (time, 1));
    let (bound, parts) = fraction(&plan["bound"]);
    assert!(bound <= time * parts, "{bound}/{parts} and {time}");
    assert_eq!(plan["proof"] == "optimal", bound == time * parts);
    if let Some(free_run) = plan["free_run_time"].as_u64() {
        assert!(free_run <= time);
    }
}

#[test]
fn golden_plans_have_the_costs_in_the_table() {
    for [line, expected] in rows(
        "
        --network ring:9 --algorithm approach1 --lengths equal:1 | 4 4 4
        --network ring:9 --algorithm approach2 --lengths equal:1 | 4 8 18
        --network ring:8 --algorithm approach1 --lengths equal:2 | 4 4 7
        --network ring:12 --algorithm circgos:4,3,2 --lengths equal:1 | 5 9 14
        --network ring:27 --ts 10 --lengths equal:1 | 6 14 39
        --network array:9 --algorithm approach1 --lengths equal:1 | 8 8 8
        --network array:10 --algorithm circgos:3,4,3 --lengths equal:1 | 9 14 23
        --network torus:6x6 --algorithm torgos:3;2;1 --lengths equal:2 | 5 7 27
        --network torus:12x12 --algorithm torgos:2;2,3;1,2 --lengths equal:2 | 9 24 116
        --network torus:9x9 --algorithm phases:3,3,1/9,3,1 --lengths equal:2 | 7 9 48
        --network torus:9x9 --algorithm cubgos --lengths equal:2 | 5 9 66
        --network torus:4x6 --algorithm approach1 --lengths equal:2 | 6 6 15
        --network mesh:4x6 --algorithm approach1 --lengths equal:2 | 10 10 31
        --network mesh:3x4x5 --algorithm approach1 --lengths equal:3 | 12 12 89
        --network mesh:9x9 --algorithm torgos:3;3;1 --lengths equal:2 | 10 18 133
        --network complete:12 --lengths equal:1 | 4 4 11
        --network complete:12 --algorithm dissemination:2 --lengths equal:1 | 3 3 11
    ",
    ) {
        let cost = replay(&planned(line));
        assert_eq!(cost[..], numbers(expected), "{line}");
    }
}

/// TORGOS on meshes, whose lines have no edge from their last PE to the first.
#[test]
fn diagonals_of_meshes_reach_every_pe() {
    for [network, parameters] in rows(
        "
        mesh:9x9 | 3;3;1 3;3;4 1;9;5 9
        mesh:12x12 | 2;2,3;1,2 1;3,2,2;1,1,1
        mesh:8x8 | 2;4;2
        mesh:4x4x4 | 2;2;2
        mesh:6x6x6 | 1;2,3;1,1
        mesh:10 | 2;5;3
    ",
    ) {
        for parameters in parameters.split(' ') {
            let algorithm = format!("--algorithm torgos:{parameters} --lengths uniform:0..4:13");
            replay(&planned(&format!("--network {network} {algorithm}")));
        }
    }
    replay(&planned(
        "--network mesh:9x9 --algorithm cubgos --lengths uniform:0..4:13",
    ));
}

#[test]
fn plans_on_random_networks_keep_the_rules() {
    let mut random = SplitMix64::new(17);
    let mut below = |n: u64| random.below(n);
    for _ in 0..35 {
        let (network, pes, algorithms) = match below(5) {
            0 | 1 => {
                let n = 3 + below(12);
                let kind = ["ring", "array"][below(2) as usize];
                let (heads, division) = (1 + below(n), 2 + below(4));
                let circgos = format!("circgos:{heads},{division},{}", division / 2 + below(3));
                let of_rings = if kind == "ring" { "halves" } else { "auto" };
                let all = ["approach1", "approach2:2", &circgos, of_rings].map(str::to_owned);
                (format!("{kind}:{n}"), n, all.to_vec())
            }
            2 => {
                let at = below(4) as usize;
                let side = [4, 6, 6, 8][at];
                let rest = ["2;2;1", "1;2,3;2,1", "3;2;3", "2;2,2;1,2"][at];
                let all = vec![format!("torgos:{rest}"), "auto".to_owned()];
                let kind = ["torus", "mesh"][below(2) as usize];
                (format!("{kind}:{side}x{side}"), side * side, all)
            }
            3 => {
                let sides = [3 + below(3), 3 + below(3), 1 + below(3)];
                let name = match sides[2] {
                    1 => format!("torus:{}x{}", sides[0], sides[1]),
                    _ => format!("mesh:{}x{}x{}", sides[0], sides[1], sides[2]),
                };
                let phase = format!("{},{},{}", 1 + below(3), 2 + below(2), 1 + below(2));
                let dimensions = if sides[2] == 1 { 2 } else { 3 };
                let phases = format!("phases:{}", vec![phase; dimensions].join("/"));
                let all = vec![phases, "approach2".to_owned(), "auto".to_owned()];
                (name, sides.iter().product(), all)
            }
            _ => {
                let n = 2 + below(12);
                let ports = 1 + below(n - 1);
                let even = if n % 2 == 0 { "neighbour" } else { "auto" };
                let others = ["circulate", "direct", "approach1", "auto", even];
                let mut all = others.map(str::to_owned).to_vec();
                all.push(format!("dissemination:{ports}"));
                (format!("complete:{n}"), n, all)
            }
        };
        let most = [1, 4, 40][below(3) as usize];
        let mut lengths: Vec<u64> = (0..pes).map(|_| below(most + 1)).collect();
        if below(3) == 0 {
            // Few PEs have data.
            let others = lengths.iter_mut().enumerate().filter(|(pe, _)| pe % 4 > 0);
            others.for_each(|(_, length)| *length = 0);
        }
        let prices = [below(30), below(4), below(3)];
        let [ts, td, tl] = prices;
        let lengths: Vec<String> = lengths.iter().map(u64::to_string).collect();
        let lengths = lengths.join(",");
        for algorithm in algorithms {
            let site = format!("--network {network} --algorithm {algorithm}");
            let prices_of = format!("--ts {ts} --td {td} --tl {tl}");
            let plan = planned(&format!("{site} --lengths {lengths} {prices_of}"));
            check(&plan, prices);
        }
    }
}

#[test]
fn bounds_are_those_of_the_network() {
    for [line, bound] in rows(
        "
        # Data: both edges of a PE receive what it lacks.
        ring:9 --lengths equal:3 | 12/1
        ring:8 --lengths equal:1 | 7/2
        # An array's end has one edge, a mesh's corner two.
        array:9 --lengths equal:1 | 8/1
        mesh:3x3 --lengths equal:1 | 4/1
        torus:3x5 --lengths equal:2 | 7/1
        complete:9 --lengths equal:2 | 16/1
        # Distance from any PE with data.
        ring:9 --lengths equal:1 --td 7 | 28/1
        mesh:3x4 --lengths equal:1 --td 7 | 35/1
        array:5 --lengths 0,0,1,0,0 --td 7 | 14/1
        # Start-ups: after each step on a ring, three times as many PEs have a block.
        ring:27 --lengths equal:1 --ts 100 | 300/1
        torus:5x5 --lengths equal:1 --ts 100 | 200/1
        array:2 --lengths equal:1 --ts 100 | 100/1
        complete:9 --lengths equal:1 --ts 100 | 400/1
        complete:9 --algorithm dissemination:2 --lengths equal:1 --ts 100 | 200/1
        ring:9 --lengths 1,0,0,0,0,0,0,0,0 --ts 100 | 100/1
        ring:9 --lengths 0,0,0,0,320,40,0,0,0 --ts 10 --td 5 | 180/1
        ring:9 --lengths 0,0,0,0,320,40,0,0,0 --ts 0 | 180/1
        ring:9 --lengths equal:0 | 0/1
        # Prices are exact.
        ring:9 --lengths equal:1 --ts 0.1 --tl 1/3 | 4/3
    ",
    ) {
        let plan = planned(&format!("--network {line} --summary"));
        let (over, under) = fraction(&plan["bound"]);
        assert_eq!(format!("{over}/{under}"), bound, "{line}");
    }
}

#[test]
fn approach_1_meets_the_bound() {
    for line in [
        "ring:8 --lengths equal:2",
        "ring:9 --lengths equal:5",
        "array:7 --lengths equal:3",
    ] {
        let plan = planned(&format!("--network {line} --ts 0 --summary"));
        assert_eq!(plan["proof"], "optimal", "{line}");
        assert_eq!(plan["algorithm"], "approach1", "{line}");
        assert!(plan.get("steps").is_none());
    }
}

/// Halves have the least load on each edge for any lengths: 300 steps, where the others take 420
/// and 815.
#[test]
fn a_free_run_waits_for_nobody() {
    for (algorithm, expected) in [("approach1", 420), ("approach2:3", 815), ("halves", 300)] {
        let line = "--network ring:9 --lengths 0,0,0,0,320,40,0,0,0 --ts 10 --td 5";
        let plan = planned(&format!("{line} --algorithm {algorithm}"));
        assert_eq!(number(&plan, "free_run_time"), expected, "{algorithm}");
        check(&plan, [10, 5, 1]);
    }
}

#[test]
fn the_largest_that_are_promised_are_planned() {
    for (network, ts) in [("ring:729", 50), ("torus:27x27", 30)] {
        let line = format!("--network {network} --lengths equal:2 --ts {ts} --summary");
        let plan = planned(&line);
        assert_eq!(number(&plan, "pes"), 729);
        assert!(number(&plan["cost"], "startups") > 5);
    }
}

/// Returns the row of a comparison with that name.
#[track_caller]
fn row<'a>(comparison: &'a Value, name: &str) -> &'a Value {
    let mut rows = list(comparison, "results").iter();
    let found = rows.find(|row| row["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {comparison}"))
}

#[test]
fn comparisons_have_what_the_paper_prints() {
    let compared = |line: &str| parsed(&format!("compare gossip --network {line} --format json"));
    let ring = compared("ring:27 --ts 10");
    for (name, paper, formula, whole) in [
        ("approach 1", 144, 143.5, 143.0),
        ("approach 2", 104, 104.0, 117.0),
        ("CIRCGOS, the paper's", 100, 100.5, 100.0),
    ] {
        let row = row(&ring, name);
        assert_eq!(row["paper"], paper, "{name}");
        let is_near = |given: &Value, wanted: f64| (given.as_f64().unwrap() - wanted).abs() < 1e-6;
        assert!(is_near(&row["formula"], formula), "{row}");
        assert!(is_near(&row["whole_steps"], whole), "{row}");
    }
    let planned = &row(&ring, "CIRCGOS, the paper's")["planned"];
    assert_eq!(number(planned, "time"), 99);
    let torus = compared("torus:729x729 --ts 8");
    assert_eq!(row(&torus, "TORGOS (3, 243, 211)")["paper"], 137_398);
    assert_eq!(row(&torus, "TORGOS, whole steps")["whole_steps"], 136_676.0);
    let half = compared("torus:27x27 --ts 15 --tl 1/2");
    assert_eq!(row(&half, "TORGOS (3, 3, 2)")["paper"], 605);
    let switch = compared("complete:9");
    assert_eq!(row(&switch, "dissemination")["best"], true);
}
