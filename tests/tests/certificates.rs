//! Certificates, orders and streams of a gather by certification: received as planned, in virtual time
//! and by real processes, and shown.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::plan::{plan, streams};
use flitcast_plan::cost::Model;
use flitcast_plan::predict::predict;
use flitcast_plan::timing::Timing;
use flitcast_proto::cost::{Edge, Link};
use flitcast_proto::items::Control;
use flitcast_proto::ops::PeSchedule;
use flitcast_proto::schedule::certification::Sync;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::{PeId, Tree};
use flitcast_tests::random::tree_and_flits;
use flitcast_tests::{parsed, printed, reported};
use proptest::prelude::*;

/// Returns a model with different edges.
fn model(pes: usize, seed: u64) -> Model {
    let mut random = SplitMix64::new(seed);
    let mut link = || Link {
        latency_ns: random.below(9_000) as f64,
        ns_per_byte: (1 + random.below(12)) as f64 / 4.0,
        ..Link::default()
    };
    let edge = |_| Edge {
        down: link(),
        up: link(),
    };
    Model {
        edges: (0..pes).map(edge).collect(),
        ..Model::unit(pes)
    }
}

/// Runs a gather in virtual time, and checks the certificates and orders that PEs receive.
fn are_received_as_planned(tree: &Arc<Tree>, schedules: &[PeSchedule], model: &Model) {
    let planned = streams(tree, schedules).expect("a gather by certification");
    let received = predict(tree, schedules, model).expect("a schedule").streams;
    for pe in tree.below_root() {
        let plan = planned[pe.index()];
        let parent = tree.parent(pe).expect("it is below the root");
        let children = &received[parent.index()].children;
        let stream = children.iter().find(|stream| stream.child == pe);
        let stream = stream.expect("every PE certifies");
        assert_eq!(stream.certificate, plan.certificate, "{pe}");
        assert_eq!(stream.bytes, plan.certificate.packets.bytes, "{pe}");
        let order = received[pe.index()].order;
        assert_eq!(order.map(|order| order.after), plan.after, "{pe}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn certificates_are_received_as_planned((tree, flits) in tree_and_flits(20), seed in any::<u64>()) {
        let bytes: Vec<u64> = flits.iter().map(|flits| flits * 700).collect();
        for sync in [Sync::Serial, Sync::Pipelined] {
            let operation = Algorithm::certification(sync);
            for pacing in [Pacing::Scheduled, Pacing::Turns, Pacing::Eager] {
                let model = model(tree.len(), seed);
                let timing = Timing::of(&model, 1000, pacing);
                are_received_as_planned(&tree, &operation.schedules(&tree, &bytes, &timing), &model);
            }
            let schedules = operation.schedules(&tree, &flits, &Timing::LOCK_STEP);
            are_received_as_planned(&tree, &schedules, &Model::unit(tree.len()));
            // The plan in steps has the same certificates.
            let planned = streams(&tree, &schedules).expect("a gather by certification");
            for item in plan(&tree, operation, &flits).control {
                match item.item {
                    Control::Certificate(certificate) => {
                        assert_eq!(planned[item.from.index()].certificate, certificate);
                    }
                    Control::Order { after } => {
                        assert_eq!(planned[item.to.index()].after, Some(after));
                    }
                    _ => {}
                }
            }
        }
    }
}

/// Figure 4 of paper 000.
#[test]
fn the_papers_figure_has_these_certificates() {
    let path = (0..6u32).map(|pe| pe.checked_sub(1).map(PeId)).collect();
    let tree = Arc::new(Tree::from_parents(path).expect("it is a path"));
    let operation = Algorithm::CERTIFICATION_SERIAL;
    let schedules = operation.schedules(&tree, &[0, 2, 3, 0, 2, 1], &Timing::LOCK_STEP);
    let planned = streams(&tree, &schedules).expect("a gather by certification");
    let each = planned[1..].iter();
    let figures = each.map(|it| (it.certificate.lag, it.certificate.stream, it.after));
    let figures: Vec<_> = figures.collect();
    let expected = [(3, 8, 3), (3, 6, 3), (4, 3, 4), (2, 3, 2), (1, 1, 2)];
    assert_eq!(figures, expected.map(|(c, n, s)| (c, n, Some(s))));
}

#[test]
fn real_processes_receive_the_planned_certificates() {
    let lengths = "--lengths 4KiB,0,9KiB,1KiB,0,70KiB,2KiB";
    let line = format!("gather --tree random:8:5 {lengths} --link rate=80mbit");
    for way in [
        "--sync serial --pacing scheduled",
        "--sync pipelined --pacing scheduled",
        "--sync pipelined --pacing turns",
        "--sync pipelined --pacing eager --rounds 3",
    ] {
        let report = parsed(&format!("{line} {way} --format json"));
        let of_round = &report["round"]["certificates_of_round"];
        assert!(of_round.is_number(), "{way}");
        let pes = report["pes"].as_array().expect("a list");
        assert!(pes[0]["certificate"].is_null());
        let mut total = 0;
        for pe in &pes[1..] {
            let [planned, received] = ["planned", "received"].map(|it| &pe["certificate"][it]);
            for key in ["lag_us", "stream_us", "stream_bytes", "after_us"] {
                assert_eq!(planned[key], received[key], "{way}: {key} of {pe}");
            }
            assert!(received["lag_us"].as_f64() > Some(0.0), "{pe}");
            if pe["parent"] == 0 {
                total += received["stream_bytes"].as_u64().expect("a number");
            }
            let holds_bytes = received["stream_bytes"].as_u64() > Some(0);
            assert_eq!(received["first_flit_us"].is_number(), holds_bytes, "{pe}");
            if holds_bytes {
                let at = |key: &str| received[key].as_f64().expect("a number");
                let [first, last] = ["first_flit_us", "last_flit_us"].map(at);
                assert!(at("certified_us") < at("ordered_us"), "{pe}");
                assert!(at("ordered_us") < first && first <= last, "{pe}");
            }
        }
        assert_eq!(report["round"]["bytes"], total, "{way}");
    }
}

#[test]
fn certificates_are_in_the_table_of_verbose_runs_and_in_dry_runs() {
    let line = "gather --tree kary:2:5 --size 2KiB";
    let expected = "certificates as planned, and as received in round 1";
    let table = printed(&format!("-v {line}"));
    assert!(table.contains(expected), "{table}");
    let lines = table.lines().map(str::trim_start);
    let received = lines.filter(|line| line.starts_with("received"));
    assert_eq!(received.count(), 4, "{table}");
    assert!(!printed(line).contains("certificates"));
    let report = reported(&format!("{line} --dry-run"));
    assert!(report.float("/pes/1/certificate/planned/lag_us") > 0.0);
    assert!(report.value("/pes/1/certificate/received").is_null());
    let scatter = reported("scatter --tree path:3 --size 1KiB");
    assert!(scatter.value("/pes/1/certificate").is_null());
}
