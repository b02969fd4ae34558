//! A limit of the rate at which each PE sends.

use flitcast_tests::files::{assert_same_below, fill, record, wait_for_partial};
use flitcast_tests::{reported, resume, scratch};

/// The least time of a round, as the sends of the busiest PE take it: 8 Mbit/s are a byte in a
/// microsecond.
#[test]
fn no_pe_sends_faster_than_the_limit() {
    for (line, busiest_bytes) in [
        ("scatter -n 3 --size 50KiB", 150 << 10),
        ("scatter --tree path:4 --size 50KiB", 150 << 10),
        (
            "scatter --tree star:4 --ports multi --size 50KiB",
            150 << 10,
        ),
        ("gather --tree path:4 --size 50KiB", 150 << 10),
        (
            "gather --tree star:4 --pacing turns --size 150KiB",
            150 << 10,
        ),
        (
            "broadcast --tree star:4 --algorithm child-by-child --size 50KiB",
            150 << 10,
        ),
        (
            "gossip --network complete:4 --algorithm direct --size 50KiB",
            150 << 10,
        ),
        (
            "exchange --network complete:4 --algorithm rounds --size 50KiB",
            150 << 10,
        ),
    ] {
        let report = reported(&format!("{line} --bwlimit 8mbit"));
        let measured = report.float("/round/measured_us/median");
        let predicted = report.float("/round/predicted_us");
        for (what, us) in [("measured", measured), ("predicted", predicted)] {
            // A millisecond's bytes leave at once.
            let least = f64::from(busiest_bytes) - 10_000.0;
            assert!(us > least, "{line}: {what} {us} us, not {least}");
        }
    }
}

/// The record of a failed round has the limit.
#[test]
fn a_resumed_round_keeps_the_limit() {
    let dir = scratch();
    fill(&dir.join("in/p1"), 1 << 20);
    let line = "scatter --tree path:2 --bwlimit 8mbit --input @/in --output @/out";
    let running = dir.start(line);
    wait_for_partial(&dir.join("out"));
    running.interrupt();
    let text = std::fs::read_to_string(record(&dir.join("out"))).expect("it is there");
    assert!(text.contains("\nbwlimit = \"8mbit\"\n"), "{text}");
    let resumed = resume(&record(&dir.join("out")), "").ok();
    assert!(resumed.stdout.contains("at most 8mbit from each PE"));
    assert_same_below(&dir.join("in"), &dir.join("out"));
}
