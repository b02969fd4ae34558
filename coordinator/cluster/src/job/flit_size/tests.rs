use flitcast_plan::cost::{Host, Hosts, Ports};

use super::*;
use crate::job::decisions::Decisions;
use crate::job::model::{assumed_host, links_alone};
use crate::job::test_tree::tree;

const MBIT_100: f64 = 80.0;
const GBIT: f64 = 8.0;

/// Returns a model of hosts with a core each and links of this rate.
fn model(tree: &Tree, ns_per_byte: f64) -> Model {
    let link = Link {
        latency_ns: 50_000.0,
        setup_ns: 0.0,
        ns_per_byte,
        burst_bytes: 0.0,
    };
    Model {
        hosts: Hosts::one(Host {
            first_ns: 0.0,
            ..assumed_host()
        }),
        ahead_ns: f64::INFINITY,
        ..links_alone(tree.len(), link, Ports::Single)
    }
}

fn best(spec: &str, operation: Algorithm, ns_per_byte: f64, lengths: &[u64]) -> PlannedRound {
    let tree = tree(spec);
    let bytes = operation.collective().by_delivery(&tree, lengths);
    let model = model(&tree, ns_per_byte);
    planned(&tree, operation, None, &bytes, &model)
}

fn planned(
    tree: &Arc<Tree>,
    operation: Algorithm,
    flit_bytes: Option<u32>,
    bytes: &[u64],
    model: &Model,
) -> PlannedRound {
    let mut decisions = Decisions::of(operation, Pacing::default());
    decisions.way.flit_bytes = flit_bytes;
    let planner = Planner::new(tree, &decisions, bytes, model);
    plan_with_best_flit_size(&planner).expect("a schedule")
}

/// Plans one message from end to end of a path of eight.
fn to_the_end(ns_per_byte: f64, bytes: u64) -> PlannedRound {
    let lengths = [0, 0, 0, 0, 0, 0, bytes];
    best("path:8", Algorithm::FARTHEST_FIRST, ns_per_byte, &lengths)
}

fn assert_is_usual(round: &PlannedRound) {
    let Decisions {
        flit_bytes,
        flit_size,
        ..
    } = round.decisions;
    assert_eq!((flit_bytes, flit_size), (USUAL_FLIT_BYTES, None));
}

#[test]
fn short_messages_over_many_slow_hops_have_short_flits() {
    for rate in [GBIT, MBIT_100] {
        let found = to_the_end(rate, 64 << 10);
        let why = found.decisions.flit_size.expect("64 KiB is one flit");
        assert!(found.decisions.flit_bytes < 16 << 10, "{why}");
        assert!(2 * why.predicted_ns < why.usual_ns, "{why}");
    }
}

#[test]
fn the_chosen_size_is_the_predicted_one() {
    let found = to_the_end(MBIT_100, 64 << 10);
    let why = found.decisions.flit_size.expect("64 KiB is one flit");
    assert_eq!(found.prediction.round_ns(), why.predicted_ns);
    assert_eq!(found.decisions.flit_bytes, why.bytes);
    let mut schedules = found.schedules.iter();
    assert!(schedules.all(|schedule| schedule.flit_bytes == why.bytes));
    let tree = tree("path:8");
    let bytes = [0, 0, 0, 0, 0, 0, 0, 64 << 10];
    let (requested, model) = (Some(USUAL_FLIT_BYTES), model(&tree, MBIT_100));
    let scatter = Algorithm::FARTHEST_FIRST;
    let usual = planned(&tree, scatter, requested, &bytes, &model);
    assert_is_usual(&usual);
    assert_eq!(usual.prediction.round_ns(), why.usual_ns);
}

#[test]
fn small_gains_keep_the_default_size() {
    // Filling the pipe takes a thousandth of the time.
    assert_eq!(to_the_end(MBIT_100, 256 << 20).decisions.flit_size, None);
    // One hop: there is no pipe to fill.
    let scatter = Algorithm::FARTHEST_FIRST;
    let star = best("star:4", scatter, MBIT_100, &[64 << 10; 3]);
    assert_is_usual(&star);
    let nothing = best("path:8", scatter, GBIT, &[0; 7]);
    assert_eq!(nothing.decisions.flit_size, None);
}

/// For a broadcast's stream any gain is enough to choose another size.
#[test]
fn long_broadcasts_down_long_paths_have_shorter_flits() {
    let path = |pes: usize, bytes: u64| {
        let operation = Algorithm::BROADCAST_ROUNDS;
        let lengths = vec![bytes; pes - 1];
        best(&format!("path:{pes}"), operation, MBIT_100, &lengths)
    };
    let found = path(32, 128 << 20);
    let why = found.decisions.flit_size.expect("the pipe is long");
    assert!(
        (16 << 10..48 << 10).contains(&found.decisions.flit_bytes),
        "{why}"
    );
    assert!(why.predicted_ns as f64 > FLIT_SIZE_WORTH * why.usual_ns as f64);
    // One hop: there is no pipe to fill.
    assert_eq!(path(2, 128 << 20).decisions.flit_size, None);
}

/// A limit for each prediction by itself.
struct EachUpTo {
    most_ns: u64,
    /// [`looking_ns`] of each prediction.
    predictions: Vec<u64>,
}

impl SearchTime for EachUpTo {
    fn predicted(&mut self, _predicted_ns: u64, looking_ns: u64) {
        self.predictions.push(looking_ns);
    }

    fn has_time_for(&self, looking_ns: u64) -> bool {
        looking_ns <= self.most_ns
    }
}

#[test]
fn a_search_without_time_for_the_best_size_finds_a_longer_one() {
    let tree = tree("path:8");
    let bytes = [0, 0, 0, 0, 0, 0, 0, 64 << 10];
    let decisions = Decisions::of(Algorithm::FARTHEST_FIRST, Pacing::default());
    let model = model(&tree, MBIT_100);
    let planner = Planner::new(&tree, &decisions, &bytes, &model);
    let mut sizes = Vec::new();
    for most_ns in [0, 10_000, 30_000, 1_000_000] {
        let mut search = EachUpTo {
            most_ns,
            predictions: Vec::new(),
        };
        let found = plan_with_best_flit_size_within(&planner, &mut search).expect("a schedule");
        assert!(search.predictions[1..].iter().all(|&ns| ns <= most_ns));
        sizes.push((found.ns(), found.decisions.flit_bytes));
    }
    assert_eq!(sizes[0].1, USUAL_FLIT_BYTES);
    // More time, shorter flits and a shorter round.
    assert!(sizes.is_sorted_by(|one, next| one.0 > next.0 && one.1 > next.1));
}

#[test]
fn slow_software_keeps_the_default_size() {
    assert_eq!(to_the_end(0.4, 64 << 10).decisions.flit_size, None);
}

#[test]
fn long_messages_have_long_flits_if_these_are_quick_and_fit_in_memory() {
    let usual = |spec: &str, operation, ns_per_byte, bytes| {
        let tree = tree(spec);
        usual_flit(&tree, operation, &model(&tree, ns_per_byte), &[0, bytes])
    };
    let (scatter, gossip) = (Algorithm::FARTHEST_FIRST, Algorithm::GOSSIP_FLOOD);
    let gather = Algorithm::CERTIFICATION_PIPELINED;
    let (least, short) = (u64::from(USUAL_FLIT_BYTES), LONG_MESSAGE_BYTES - 1);
    let long = LONG_MESSAGE_BYTES;
    for (spec, operation, ns_per_byte, bytes, expected) in [
        ("star:9", scatter, 0.0, least, USUAL_FLIT_BYTES),
        ("star:9", scatter, 0.0, short, SEGMENT_FLIT_BYTES),
        ("star:9", scatter, 0.0, long, LONG_FLIT_BYTES),
        ("star:90", scatter, 0.0, long, LONG_FLIT_BYTES),
        ("star:9", scatter, GBIT, long, USUAL_FLIT_BYTES),
        ("star:9", gather, 0.0, long, LONG_FLIT_BYTES),
        ("star:10", gather, 0.0, long, SEGMENT_FLIT_BYTES),
        ("path:90", gather, 0.0, long, LONG_FLIT_BYTES),
        ("star:9", gossip, 0.0, long, LONG_FLIT_BYTES),
    ] {
        let chosen = usual(spec, operation, ns_per_byte, bytes);
        assert_eq!(chosen, expected, "{spec}, {operation:?}, {bytes} bytes");
    }
}

/// Another size is only chosen if it makes the round quicker by a fifth, and all PEs receive the same
/// size.
#[test]
fn all_operations_gain_by_what_is_chosen() {
    for (operation, pes) in [
        (Algorithm::CERTIFICATION_PIPELINED, 6),
        (Algorithm::SHOULDER_TAP, 6),
        (Algorithm::BROADCAST_ROUNDS, 6),
        (Algorithm::EXCHANGE_TREE, 49),
    ] {
        let found = best("path:7", operation, GBIT, &vec![64 << 10; pes]);
        let sizes = found.schedules.iter().map(|schedule| schedule.flit_bytes);
        assert!(sizes.eq([found.decisions.flit_bytes; 7]), "{operation:?}");
        let (size, why) = (found.decisions.flit_bytes, found.decisions.flit_size);
        assert_eq!(why.is_none(), size == USUAL_FLIT_BYTES, "{operation:?}");
        if let Some(why) = why {
            let most_ns = FLIT_SIZE_WORTH * why.usual_ns as f64;
            assert!(why.predicted_ns as f64 <= most_ns, "{why}");
        }
        assert!(why.is_some() || operation != Algorithm::BROADCAST_ROUNDS);
    }
}

#[test]
fn the_formula_gives_the_size_of_a_stream_on_its_own() {
    let tree = tree("path:8");
    let bytes = [0, 0, 0, 0, 0, 0, 0, 1 << 20];
    let model = model(&tree, GBIT);
    let scatter = Algorithm::FARTHEST_FIRST;
    let decisions = Decisions::of(scatter, Pacing::default());
    let planner = Planner::new(&tree, &decisions, &bytes, &model);
    let planned = planner.plan_and_predict(4096).expect("a schedule");
    let size = best_alone(&tree, scatter, &planned.schedules, &model).expect("a size");
    // The root of M a / (g (l - 1)): a = 12 us of software and 29 bytes, g = 8.24 ns, l = 7.
    let continuous = ((1u64 << 20) as f64 * (12_000.0 + 29.0 * 8.0) / (8.24 * 6.0)).sqrt();
    assert!(
        (f64::from(size) / continuous - 1.0).abs() < 0.05,
        "{size} and {continuous}"
    );
}
