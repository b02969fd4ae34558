//! A limit of the rate at which each PE sends.

use flitcast_tests::reported;

/// The bytes that the busiest PE sends in each round of the test.
const BUSIEST_BYTES: u32 = 150 << 10;

/// The least time of a round, as the sends of the busiest PE take it: 8 Mbit/s are a byte in a
/// microsecond.
#[test]
fn no_pe_sends_faster_than_the_limit() {
    for line in [
        "scatter -n 3 --size 50KiB",
        "scatter --tree path:4 --size 50KiB",
        "scatter --tree star:4 --ports multi --size 50KiB",
        "gather --tree path:4 --size 50KiB",
        "gather --tree star:4 --pacing turns --size 150KiB",
        "broadcast --tree star:4 --algorithm child-by-child --size 50KiB",
        "gossip --network complete:4 --algorithm direct --size 50KiB",
        "exchange --network complete:4 --algorithm rounds --size 50KiB",
    ] {
        let report = reported(&format!("{line} --bwlimit 8mbit"));
        let measured = report.float("/round/measured_us/median");
        let predicted = report.float("/round/predicted_us");
        for (what, us) in [("measured", measured), ("predicted", predicted)] {
            // A millisecond's bytes leave at once.
            let least = f64::from(BUSIEST_BYTES) - 10_000.0;
            assert!(us > least, "{line}: {what} {us} us, not {least}");
        }
    }
}
