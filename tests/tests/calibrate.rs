//! `flitcast calibrate` on real processes, and what other commands make of its profile.

use std::path::Path;

use flitcast_tests::{Report, run, scratch};

/// As short as it may be: what is found is not looked at.
const SHORT: &str = "--seconds 0.5";

fn words(dir: &Path, line: &str) -> Vec<String> {
    let dir = dir.to_str().expect("scratch paths are UTF-8");
    line.split_whitespace()
        .map(|word| word.replace('@', dir))
        .collect()
}

#[test]
fn a_profile_is_written_and_stands_for_the_measurement() {
    let dir = scratch();
    let line = format!("calibrate --tree kary:2:4 --output @/profile.toml --format json {SHORT}");
    let run_ = run(words(dir.path(), &line)).ok();
    // The user knows beforehand.
    let first = run_.stderr.lines().next().expect("it says something");
    assert!(
        first.contains("measures 3 edges") && first.contains("about 1 s"),
        "{first}"
    );
    let found = run_.report();
    let edges = found.list("/edges");
    assert_eq!(edges.len(), 3);
    for edge in 0..3 {
        for link in ["down", "up"] {
            for value in ["latency_us", "ns_per_byte"] {
                let of = |part: &str| found.float(&format!("/edges/{edge}/{link}/{value}/{part}"));
                assert!(
                    of("low") <= of("value") && of("value") <= of("high"),
                    "{value}"
                );
                assert!(of("value") > 0.0, "{value}");
            }
        }
        // One host, one clock.
        assert_eq!(
            found.float(&format!("/edges/{edge}/clock_uncertainty_us")),
            0.0
        );
    }
    assert!(found.list("/workloads").len() >= 2);
    assert!(found.float("/host/wake_ns") > 0.0);
    assert!((0.0..=1.0).contains(&found.float("/relay/overlap")));

    for operation in ["scatter", "gather"] {
        let line = format!("{operation} --tree kary:2:4 --size 10KiB --format json");
        let measuring = run(words(dir.path(), &line)).ok().report();
        assert!(measuring.float("/probe_us") > 0.0);
        let line = format!("{line} --profile @/profile.toml");
        let knowing = run(words(dir.path(), &line)).ok().report();
        assert!(knowing.value("/probe_us").is_null());
        knowing.assert_all_arrived();
        // What was calibrated is what is used.
        let of = |report: &Report, base: &str| report.float(&format!("/edges/1/up/{base}"));
        assert_eq!(of(&knowing, "ns_per_byte"), of(&found, "ns_per_byte/value"));
    }
}

#[test]
fn without_an_output_it_only_tells() {
    let dir = scratch();
    let run = run(words(
        dir.path(),
        &format!("calibrate --tree path:2 {SHORT}"),
    ))
    .ok();
    for word in [
        "P0 to P1", "P1 to P0", "latency", "rate", "wake", "costs", "clocks", "not kept",
    ] {
        let word = if word == "wake" { "runs " } else { word };
        assert!(run.stdout.contains(word), "no `{word}` in\n{}", run.stdout);
    }
    // There is no relay on the way.
    assert!(!run.stdout.contains("relay"), "{}", run.stdout);
}
