//! A checker of printed plans, independent of the planners: it replays them flit by flit and checks
//! ports, possession, delivery, and the figures of the plan.

use std::collections::{BTreeMap, BTreeSet};

use flitcast_tests::parsed;
use serde_json::Value;

/// Returns the output of `flitcast plan`.
#[track_caller]
pub fn planned_of(operation: &str, line: &str) -> Value {
    parsed(&format!("plan {operation} {line} --format json"))
}

pub fn number(value: &Value, key: &str) -> u64 {
    let number = value[key].as_u64();
    number.unwrap_or_else(|| panic!("no number {key} in {value}"))
}

pub fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = value[key].as_array();
    list.unwrap_or_else(|| panic!("no list {key} in {value}"))
}

/// Returns whether an element is new in a set, and adds it.
fn is_new<T: Ord>(set: &mut BTreeSet<T>, element: T, what: &str) {
    assert!(set.insert(element), "{what} twice");
}

/// Returns both directions of all edges; `None` in a complete network.
fn arcs_of(plan: &Value) -> Option<BTreeSet<[u64; 2]>> {
    let edges = plan["edges"].as_array();
    assert_eq!(edges.is_none(), plan["complete"] == true);
    let ends = |edge: &Value| [0, 1].map(|end| edge[end].as_u64().expect("a PE"));
    let both = edges?.iter().map(ends).flat_map(|[a, b]| [[a, b], [b, a]]);
    Some(both.collect())
}

/// Returns all crossings of each step: from, to, message, flit.
fn steps_of(plan: &Value) -> BTreeMap<u64, Vec<[u64; 4]>> {
    let arcs = arcs_of(plan);
    let pes = number(plan, "pes");
    let mut steps: BTreeMap<u64, Vec<[u64; 4]>> = BTreeMap::new();
    for crossing in list(plan, "crossings") {
        let of = |key| number(crossing, key);
        let edge = [of("from"), of("to")];
        assert!(arcs.as_ref().is_none_or(|arcs| arcs.contains(&edge)));
        assert!(edge[0] != edge[1] && edge.iter().all(|pe| *pe < pes));
        assert!(of("flits") > 0 && of("first_step") > 0 && of("every") > 0);
        for flit in 0..of("flits") {
            let step = of("first_step") + flit * of("every");
            let crossings = steps.entry(step).or_default();
            crossings.push([edge[0], edge[1], of("message"), of("offset") + flit]);
        }
    }
    steps
}

/// The stay of a flit at a PE: the step of its first arrival, and that of its last departure.
#[derive(Clone, Copy)]
struct Stay {
    arrived: u64,
    departed: u64,
}

/// Replays a plan; returns the time.
#[track_caller]
pub fn replay(plan: &Value) -> u64 {
    let steps = steps_of(plan);
    // For each PE, message and flit. Flits at their source arrived in step 0.
    let mut stays: BTreeMap<[u64; 3], Stay> = BTreeMap::new();
    let mut sources = BTreeMap::new();
    for message in list(plan, "messages") {
        let of = |key| number(message, key);
        let here = Stay {
            arrived: 0,
            departed: 0,
        };
        let flits = 0..of("flits");
        stays.extend(flits.map(|flit| ([of("source"), of("id"), flit], here)));
        let other = sources.insert(of("id"), of("source"));
        assert_eq!(other, None, "an id twice");
    }
    // A flit that goes around a tree passes some PEs several times, and combined messages repeat flits.
    let algorithm = plan["algorithm"].as_str().expect("a name");
    let may_return = algorithm == "ring-emulation" || algorithm.starts_with("combining");
    let has_one_port = plan["ports"] != "multi";
    for (&step, crossings) in &steps {
        let (mut sends, mut takes, mut arcs) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for &[from, to, message, flit] in crossings {
            is_new(&mut arcs, [from, to], "an arc");
            if has_one_port {
                is_new(&mut sends, from, "a send port");
                is_new(&mut takes, to, "a receive port");
            }
            let here = stays.get_mut(&[from, message, flit]);
            let here = here.filter(|stay| stay.arrived < step);
            let here = here.unwrap_or_else(|| panic!("P{from}: {flit} of {message} in {step}"));
            here.departed = step;
        }
        for &[_, to, message, flit] in crossings {
            let stay = Stay {
                arrived: step,
                departed: 0,
            };
            let first = stays.entry([to, message, flit]).or_insert(stay);
            assert!(
                first.arrived == step || may_return,
                "P{to} gets {flit} of {message} again"
            );
        }
    }
    check_delivery(plan, &stays);
    let time = steps.last_key_value().map_or(0, |(step, _)| *step);
    assert_eq!(time, number(plan, "time_steps"));
    let bound = number(plan, "bound_steps");
    assert!(bound <= time, "no plan beats the bound");
    assert_eq!(plan["proof"] == "optimal", bound == time);
    let of_others = stays.into_iter();
    let of_others = of_others.filter(|([pe, message, _], _)| sources[message] != *pe);
    let kept = most_kept(of_others.map(|([pe, ..], stay)| (pe, stay)));
    assert_eq!(kept, number(plan, "kept_flits"));
    time
}

fn check_delivery(plan: &Value, stays: &BTreeMap<[u64; 3], Stay>) {
    for message in list(plan, "messages") {
        let of = |key| number(message, key);
        for to in list(message, "destinations") {
            let to = to.as_u64().expect("a PE");
            assert!(to < number(plan, "pes") && to != of("source"));
            let mut all = (0..of("flits")).map(|flit| [to, of("id"), flit]);
            assert!(all.all(|flit| stays.contains_key(&flit)), "P{to}");
        }
        if matches!(plan["operation"].as_str(), Some("scatter" | "gather")) {
            check_steps(plan, message);
        }
    }
}

/// Checks the steps of a PE's message in a plan: when its first flit leaves, and when its last one
/// arrives.
fn check_steps(plan: &Value, message: &Value) {
    let of = |key| number(message, key);
    let crossings = list(plan, "crossings").iter();
    let own = crossings.filter(|crossing| crossing["message"] == of("id"));
    let steps = own.map(|crossing| {
        let of = |key| number(crossing, key);
        [
            of("first_step"),
            of("first_step") + (of("flits") - 1) * of("every"),
        ]
    });
    let steps: Vec<[u64; 2]> = steps.collect();
    assert_eq!(of("pe"), of("id"));
    let first = steps.iter().map(|[first, _]| *first).min();
    let last = steps.iter().map(|[_, last]| *last).max();
    assert_eq!(first, Some(of("first_step")));
    assert_eq!(last, Some(of("arrival_step")));
}

/// Returns the largest number of flits that a PE keeps for others at the end of a step.
fn most_kept(stays: impl Iterator<Item = (u64, Stay)>) -> u64 {
    let kept = stays.filter(|(_, stay)| stay.departed > stay.arrived);
    let changes = kept.flat_map(|(pe, stay)| [(pe, stay.departed, -1), (pe, stay.arrived, 1)]);
    let mut changes: Vec<(u64, u64, i64)> = changes.collect();
    // Within a step, departures count before arrivals, because at its end departed flits are gone.
    changes.sort_unstable();
    let (mut here, mut most) = (0, 0);
    for (_, _, change) in changes {
        here += change;
        most = most.max(here);
    }
    most as u64
}
