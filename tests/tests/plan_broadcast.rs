//! Plans of broadcasts, replayed flit by flit by a checker that knows nothing of how they are made:
//! ports, possession, delivery, and what is kept meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use flitcast_proto::seeded::SplitMix64;
use flitcast_tests::run;
use serde_json::Value;

#[track_caller]
fn planned(line: &str) -> Value {
    let line = format!("plan broadcast {line} --format json");
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
    let (pes, message) = (number(plan, "pes"), &list(plan, "messages")[0]);
    let (source, flits) = (number(message, "source"), number(message, "flits"));
    let destinations = list(message, "destinations").iter();
    let destinations: Vec<u64> = destinations.filter_map(Value::as_u64).collect();
    let others: Vec<u64> = (0..pes).filter(|pe| *pe != source).collect();
    assert_eq!(destinations, others);
    let edges: Option<BTreeSet<[u64; 2]>> = plan["edges"].as_array().map(|edges| {
        let ends = |edge: &Value| [0, 1].map(|end| edge[end].as_u64().expect("a PE"));
        let both = edges.iter().map(ends).flat_map(|[a, b]| [[a, b], [b, a]]);
        both.collect()
    });
    assert_eq!(edges.is_none(), plan["complete"] == true);
    let mut steps: BTreeMap<u64, Vec<[u64; 3]>> = BTreeMap::new();
    for crossing in list(plan, "crossings") {
        let of = |key| number(crossing, key);
        let (from, to) = (of("from"), of("to"));
        assert!(
            edges
                .as_ref()
                .is_none_or(|edges| edges.contains(&[from, to]))
        );
        assert!(of("first_step") > 0 && of("every") > 0);
        for flit in 0..of("flits") {
            let step = of("first_step") + flit * of("every");
            steps
                .entry(step)
                .or_default()
                .push([from, to, of("offset") + flit]);
        }
    }
    let has_one_port = plan["ports"] != "multi";
    let mut came: BTreeMap<[u64; 2], u64> = (0..flits).map(|flit| ([source, flit], 0)).collect();
    let mut gone: BTreeMap<[u64; 2], u64> = BTreeMap::new();
    for (&step, crossings) in &steps {
        let (mut sends, mut takes, mut arcs) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for &[from, to, flit] in crossings {
            is_new(&mut arcs, [from, to], "an arc");
            if has_one_port {
                is_new(&mut sends, from, "a send port");
                is_new(&mut takes, to, "a receive port");
            }
            let here = came.get(&[from, flit]);
            assert!(
                here.is_some_and(|at| *at < step),
                "P{from} has no flit {flit} in {step}"
            );
            gone.insert([from, flit], step);
        }
        for &[_, to, flit] in crossings {
            let before = came.insert([to, flit], step);
            assert_eq!(before, None, "P{to} gets flit {flit} again");
        }
    }
    assert_eq!(came.len() as u64, pes * flits, "everybody has everything");
    let time = steps.last_key_value().map_or(0, |(step, _)| *step);
    assert_eq!(time, number(plan, "time_steps"));
    let bound = number(plan, "bound_steps");
    assert!(bound <= time, "no plan beats the bound");
    assert_eq!(plan["proof"] == "optimal", bound == time);
    let kept = (0..=time).flat_map(|step| (0..pes).map(move |pe| [step, pe]));
    let kept = kept.map(|[step, pe]| {
        let stays = |flit: &u64| {
            let (came, gone) = (came.get(&[pe, *flit]), gone.get(&[pe, *flit]));
            came.is_some_and(|at| *at <= step) && gone.is_some_and(|at| *at > step)
        };
        (0..flits).filter(stays).count() * usize::from(pe != source)
    });
    assert_eq!(kept.max().unwrap_or(0) as u64, number(plan, "kept_flits"));
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
