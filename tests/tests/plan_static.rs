//! Plans of broadcasts, and of scatters from any PE, replayed flit by flit by a checker that knows nothing of how they are made:
//! ports, possession, delivery, and what is kept meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use flitcast_proto::seeded::SplitMix64;
use flitcast_tests::run;
use serde_json::Value;

#[track_caller]
fn planned(line: &str) -> Value {
    planned_of("broadcast", line)
}

#[track_caller]
fn planned_of(operation: &str, line: &str) -> Value {
    let line = format!("plan {operation} {line} --format json");
    let finished = run(line.split_whitespace()).ok();
    serde_json::from_str(&finished.stdout).expect("it is JSON")
}

fn number(value: &Value, key: &str) -> u64 {
    let number = value[key].as_u64();
    number.unwrap_or_else(|| panic!("no number {key} in {value}"))
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = value[key].as_array();
    list.unwrap_or_else(|| panic!("no list {key} in {value}"))
}

/// Whether this came first is what a set says that takes it.
fn is_new<T: Ord>(set: &mut BTreeSet<T>, element: T, what: &str) {
    assert!(set.insert(element), "{what} twice");
}

/// Replays a plan; its time.
#[track_caller]
fn replay(plan: &Value) -> u64 {
    let pes = number(plan, "pes");
    let edges: Option<BTreeSet<[u64; 2]>> = plan["edges"].as_array().map(|edges| {
        let ends = |edge: &Value| [0, 1].map(|end| edge[end].as_u64().expect("a PE"));
        let both = edges.iter().map(ends).flat_map(|[a, b]| [[a, b], [b, a]]);
        both.collect()
    });
    assert_eq!(edges.is_none(), plan["complete"] == true);
    // When each flit of a message came to a PE, and when it last went on from there.
    let mut came: BTreeMap<[u64; 3], u64> = BTreeMap::new();
    let mut gone: BTreeMap<[u64; 3], u64> = BTreeMap::new();
    for message in list(plan, "messages") {
        let of = |key| number(message, key);
        let flits = 0..of("flits");
        came.extend(flits.map(|flit| ([of("source"), of("id"), flit], 0)));
    }
    let mut steps: BTreeMap<u64, Vec<[u64; 4]>> = BTreeMap::new();
    for crossing in list(plan, "crossings") {
        let of = |key| number(crossing, key);
        let (from, to, message) = (of("from"), of("to"), of("message"));
        let edge = [from, to];
        assert!(edges.as_ref().is_none_or(|edges| edges.contains(&edge)));
        assert!(of("first_step") > 0 && of("every") > 0);
        for flit in 0..of("flits") {
            let step = of("first_step") + flit * of("every");
            let crossings = steps.entry(step).or_default();
            crossings.push([from, to, message, of("offset") + flit]);
        }
    }
    let has_one_port = plan["ports"] != "multi";
    for (&step, crossings) in &steps {
        let (mut sends, mut takes, mut arcs) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for &[from, to, message, flit] in crossings {
            is_new(&mut arcs, [from, to], "an arc");
            if has_one_port {
                is_new(&mut sends, from, "a send port");
                is_new(&mut takes, to, "a receive port");
            }
            let here = came.get(&[from, message, flit]);
            let is_here = here.is_some_and(|at| *at < step);
            assert!(is_here, "P{from} has no flit {flit} of {message} in {step}");
            gone.insert([from, message, flit], step);
        }
        for &[_, to, message, flit] in crossings {
            let before = came.insert([to, message, flit], step);
            assert_eq!(before, None, "P{to} gets flit {flit} of {message} again");
        }
    }
    for message in list(plan, "messages") {
        let of = |key| number(message, key);
        for to in list(message, "destinations") {
            let to = to.as_u64().expect("a PE");
            assert!(to < pes && to != of("source"));
            let all = (0..of("flits")).map(|flit| [to, of("id"), flit]);
            assert!(
                all.into_iter().all(|flit| came.contains_key(&flit)),
                "P{to}"
            );
        }
    }
    let time = steps.last_key_value().map_or(0, |(step, _)| *step);
    assert_eq!(time, number(plan, "time_steps"));
    let bound = number(plan, "bound_steps");
    assert!(bound <= time, "no plan beats the bound");
    assert_eq!(plan["proof"] == "optimal", bound == time);
    // At the end of each step, what has come and is yet to go on from who is not its source.
    let stays = |step: u64| {
        let mut kept = vec![0; pes as usize];
        for (at, last) in &gone {
            let from = came[at];
            kept[at[0] as usize] += u64::from(0 < from && from <= step && step < *last);
        }
        kept.into_iter().max().unwrap_or(0)
    };
    let kept = steps.keys().map(|step| stays(*step)).max();
    assert_eq!(kept.unwrap_or(0), number(plan, "kept_flits"));
    time
}

/// Single root, single worst source, multi root, multi worst: one flit on complete binary trees.
#[test]
fn one_flit_takes_what_the_table_says() {
    for (pes, expected) in [
        (3, [2, 2, 1, 2]),
        (7, [4, 5, 2, 4]),
        (15, [6, 8, 3, 6]),
        (31, [8, 11, 4, 8]),
        (63, [10, 14, 5, 10]),
    ] {
        let leaf = pes - 1;
        let line = |rest: &str| format!("--tree kary:2:{pes} --size 1 {rest}");
        let lines = [
            line(""),
            line(&format!("--from P{leaf}")),
            line("--ports multi"),
            line(&format!("--ports multi --from {leaf}")),
        ];
        assert_eq!(
            lines.map(|line| replay(&planned(&line))),
            expected,
            "{pes} PEs"
        );
    }
}

/// Steps to 64 hosts for 1, 10, 100 and 1000 flits.
#[test]
fn many_flits_to_64_hosts_take_what_the_table_says() {
    for (what, expected) in [
        (
            "--network complete:64 --algorithm path",
            [63, 72, 162, 1062],
        ),
        ("--tree kary:2:64", [10, 28, 208, 2008]),
        ("--tree star:64", [63, 630, 6300, 63000]),
        (
            "--network complete:64 --algorithm hypercube",
            [7, 16, 106, 1006],
        ),
        (
            "--network hypercube:6 --algorithm hypercube --from 5",
            [7, 16, 106, 1006],
        ),
        ("--network complete:64 --from P63", [7, 16, 106, 1006]),
    ] {
        for (flits, steps) in [1, 10, 100, 1000].into_iter().zip(expected) {
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
    for seed in 0..60 {
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
    // 895 steps, where no plan takes less than 893.
    assert!(urgent * 200 <= bounds * 201, "{urgent} and {bounds} steps");
}

#[test]
fn a_million_pes_are_planned() {
    let line = "--tree kary:2:1000000 --size 100 --from P999999 --algorithm rounds --summary";
    let plan = planned(line);
    assert_eq!(number(&plan, "pes"), 1_000_000);
    assert!(number(&plan, "time_steps") > 200);
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    for (line, told) in [
        (
            "--tree path:3 --size 1 --algorithm path",
            "--network complete:N",
        ),
        (
            "--network ring:5 --size 1 --algorithm hypercube",
            "--network complete:N",
        ),
        (
            "--network complete:6 --size 1 --algorithm hypercube",
            "6 is no power of 2",
        ),
        (
            "--tree path:3 --size 1 --from P3",
            "there is no P3 among 3 PEs, P0 to P2",
        ),
        ("--tree path:3 --size 1 --from Q", "3 or P3, say"),
        (
            "--tree path:3 --size 1 --algorithm kary:0",
            "auto, rounds, urgent",
        ),
        (
            "--tree path:3 --size 1 --ports multi --algorithm urgent",
            "to all its children at once",
        ),
        (
            "--tree path:3000 --size 9000 --algorithm urgent",
            "one by one are too many",
        ),
    ] {
        let finished = run(format!("plan broadcast {line}").split_whitespace());
        assert_eq!(finished.code, Some(2), "{line}: {}", finished.stderr);
        assert!(
            finished.stderr.contains(told),
            "{line}: {}",
            finished.stderr
        );
    }
}

/// A scatter's branches, from the root and from the worst source, one flit each: by single ports
/// n - 1 steps, by many as many as the largest branch has PEs.
#[test]
fn scatters_from_any_pe_take_what_the_table_says() {
    for (pes, expected) in [
        (3, [2, 2, 1, 2]),
        (7, [6, 6, 3, 6]),
        (15, [14, 14, 7, 14]),
        (31, [30, 30, 15, 30]),
        (63, [62, 62, 31, 62]),
    ] {
        let leaf = pes - 1;
        let line = |rest: &str| format!("--tree kary:2:{pes} --lengths equal:1 {rest}");
        let lines = [
            line("--from 0"),
            line(&format!("--from P{leaf}")),
            line("--ports multi"),
            line(&format!("--ports multi --from {leaf}")),
        ];
        let times = lines.map(|line| replay(&planned_of("scatter", &line)));
        assert_eq!(times, expected, "{pes} PEs");
    }
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
    let finished = run("plan scatter --tree path:3 --lengths 1,2 --from 1 --simulate".split(' '));
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    assert!(
        finished
            .stderr
            .contains("--simulate is for a scatter from P0")
    );
}
