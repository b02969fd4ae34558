//! Simulated clusters on which things go wrong: what is promised holds in every run, a
//! run is its seed, and mistakes made on purpose are found.
//!
//! `cargo run -p flitcast-tests --release --bin storm -- --seeds 100000` runs more of
//! them, `-- --seed N --trace` shows one.

use flitcast_tests::storm::{self, Finding, Kind, Plant, Scenario, Tally};

/// Enough to meet every fault in every operation.
const SEEDS: std::ops::Range<u64> = 0..200;

/// The hash of their traces, as it was printed once: a seed is the same run on every machine, in
/// every build and with every version of a library. It changes with what a round does and with
/// what a seed stands for, and with nothing else: who means that types the new one in.
const TRACE: &str = "c64c467f2e557c1c7be2e147323189e0";

#[test]
fn every_promise_holds_in_two_hundred_runs() {
    let mut tally = Tally::default();
    for seed in SEEDS {
        tally.add(&storm::run(seed, None, false));
    }
    assert!(tally.findings.is_empty(), "{tally}");
    assert!(tally.faults.iter().all(|&faults| faults > 0), "{tally}");
    let came_about = [
        tally.rounds_well,
        tally.rounds_given_up,
        tally.delivered,
        tally.doubled_frames,
        tally.late_frames,
    ];
    assert!(came_about.iter().all(|&figure| figure > 0), "{tally}");
    assert_eq!(format!("{:032x}", tally.trace), TRACE, "{tally}");
}

#[test]
fn a_run_is_its_seed_bit_for_bit() {
    let runs = || SEEDS.map(|seed| storm::run(seed, None, false).trace);
    let first: Vec<u128> = runs().collect();
    assert_eq!(first, runs().collect::<Vec<_>>());
    let mut different = first.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), first.len(), "no two seeds are one run");
}

/// Seeds that were findings once: an order went, in the prediction alone, while a write
/// waited for room.
#[test]
fn what_was_found_does_not_come_back() {
    for seed in [24_767, 74_397, 88_948, 156_754, 234_929, 422_759] {
        assert_eq!(storm::run(seed, None, false).findings, [], "seed {seed}");
    }
}

/// On the same links and by the same machines the driver here and the prediction's come
/// to the same, to the nanosecond.
#[test]
fn a_faultless_round_takes_what_is_predicted() {
    let mut compared = 0;
    for seed in SEEDS {
        let scenario = Scenario::of(seed);
        if !scenario.faults.is_empty() || scenario.commit_ns > 0 {
            continue;
        }
        let outcome = storm::run(seed, None, false);
        let first = outcome.rounds_ns.first();
        assert_eq!(first, Some(&scenario.predicted_ns), "seed {seed}");
        compared += 1;
    }
    assert!(compared > 10, "{compared}");
}

/// Whatever a connection doubles, no round fails of it: where nothing else goes wrong, a
/// round that is given up is a finding.
#[test]
fn doubled_frames_change_no_message() {
    let (mut doubled, mut dropped) = (0, 0);
    for seed in 0..2000 {
        let scenario = Scenario::of(seed);
        let doubles = |kind: &Kind| matches!(kind, Kind::Duplicate { .. });
        if scenario.faults.iter().any(|fault| doubles(&fault.kind)) {
            let outcome = storm::run(seed, None, false);
            assert_eq!(outcome.findings, [], "seed {seed}");
            doubled += outcome.doubled_frames;
            dropped += outcome.repeated_frames;
        }
    }
    assert!(dropped > 50 && dropped <= doubled, "{dropped} of {doubled}");
}

/// What a mistake has to be found by: anything else would be found by accident, or by a judge who
/// errs.
fn is_found_by(plant: Plant, finding: &Finding) -> bool {
    match plant {
        // Those who live wait for ever, and are not asked; ...
        Plant::ForgetsToAbort => matches!(finding, Finding::Waits(_) | Finding::Unasked(_)),
        Plant::WritesOtherBytes => matches!(finding, Finding::WrongBytes(_)),
        // ... or what is there is sent again, unless it is found.
        Plant::ForgetsDeliveries => matches!(finding, Finding::Unlisted(_)),
        Plant::DeliversTwice => matches!(finding, Finding::DeliveredTwice(_)),
    }
}

#[test]
fn each_mistake_made_on_purpose_is_found_by_what_it_causes() {
    for plant in Plant::ALL {
        let mut found = 0;
        for seed in SEEDS {
            for finding in storm::run(seed, Some(plant), false).findings {
                let is_expected = is_found_by(plant, &finding);
                assert!(is_expected, "{plant:?}, seed {seed}: {finding}");
                found += 1;
            }
        }
        assert!(found > 0, "{plant:?} is not found");
    }
}
