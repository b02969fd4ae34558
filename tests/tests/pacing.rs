//! The pacing of TRANSMIT AFTER orders: with every pacing of every gather all bytes arrive, on
//! unshaped and shaped links, and the report names the pacing.

use std::path::Path;

use flitcast_tests::clocks::{AHEAD_S, with_another_clock};
use flitcast_tests::files::{assert_same_below, fill};
use flitcast_tests::{Report, hosts, parsed, printed, scratch};

const PACINGS: [&str; 3] = ["scheduled", "turns", "eager"];

#[test]
fn every_pacing_brings_every_byte() {
    // Synthetic messages are checked byte by byte at their destinations.
    for gather in [
        "--tree star:6",
        "--tree kary:2:8",
        "--tree kary:2:8 --sync serial",
        "--tree path:5",
        "--tree path:5 --algorithm certification",
        "--tree random:9:3",
    ] {
        for pacing in PACINGS {
            for links in ["", "--link rate=400mbit,latency=200us"] {
                let report = parsed(&format!(
                    "gather {gather} --pacing {pacing} {links} --flit-size 8KiB \
                     --lengths uniform:0..60000:4 --rounds 3 --format json"
                ));
                assert_eq!(report["pacing"], pacing, "{gather}");
                let round = &report["round"];
                assert!(round["predicted_us"].as_f64() > Some(0.0), "{gather}");
                let messages = round["messages"].as_u64().expect("a count") as usize;
                let pes = report["pes"].as_array().expect("a list").iter();
                let arrived = pes.filter(|pe| pe["measured_us"]["median"].is_f64());
                assert_eq!(arrived.count(), messages, "{gather} {pacing} {links}");
            }
        }
    }
}

#[test]
fn the_report_names_the_pacing() {
    let heading = printed("gather --tree star:3 --size 1KiB --pacing turns");
    let expected = "certification, pipelined, turns: ";
    assert!(heading.contains(expected), "{heading}");
    let scatter = parsed("scatter --tree star:3 --size 1KiB --format json");
    assert!(scatter["pacing"].is_null());
    let usual = parsed("gather --tree star:3 --size 1KiB --format json");
    assert_eq!(usual["pacing"], "scheduled");
}

/// A tree over two clocks: P0 and P2 read one, P1 and P3 each another; P2 is P1's child, and P3
/// P0's. `boot_id` is the boot id of their host, if it is another one.
fn over_two_clocks(boot_id: Option<&Path>) -> String {
    let other = format!("parent = 'a'\nrun = {}", with_another_clock(boot_id));
    hosts(&["", &other, "parent = 'b'", &other])
}

/// Checks that all measured times are between the trigger and the end of the round, and much
/// smaller than the differences of the clocks.
fn assert_sane(report: &Report, what: &str) {
    // No run may take longer; the clocks differ by a thousand times as much.
    const RUN_US: f64 = 60e6;
    const { assert!(AHEAD_S > 60_000) };
    report.assert_all_arrived();
    let round = report.float("/round/measured_us/max");
    assert!(round < RUN_US, "{what}: {round} us");
    for pe in 1..4 {
        let last = report.float(&format!("/pes/{pe}/measured_us/max"));
        // Not all are 0, which would be the result of clamped negative differences. On a busy machine the
        // difference of the clocks is known less exactly than a short message takes.
        assert!(last > 0.0 && last <= round, "{what}: P{pe} {last}");
    }
    let known_to_us = report.float("/clock_uncertainty_us");
    assert!(known_to_us > 0.0, "{what}: there are two clocks");
}

/// Orders contain the time to wait, and no PE receives a reading of another one's clock: neither
/// the times of a round nor its bytes depend on the clocks. Measured times are converted to P0's
/// clock, as well as that is known.
fn assert_clocks_do_not_matter(boot_id: Option<&Path>) {
    let dir = scratch();
    dir.put("cluster.toml", over_two_clocks(boot_id));
    for operation in [
        "scatter",
        "gather --pacing scheduled",
        "gather --pacing turns",
        "gather --pacing scheduled --sync serial",
    ] {
        let line = "--cluster @/cluster.toml --lengths 300KiB,70000,1 --rounds 3";
        let report = dir.report(&format!("{operation} {line}"));
        assert_sane(&report, operation);
    }
    for name in ["b", "c", "d"] {
        fill(&dir.join(format!("in/{name}/data")), 90_000);
    }
    for line in [
        "scatter --input @/in --output @/out",
        "gather --input @/out --output @/back",
    ] {
        dir.run(&format!("{line} --cluster @/cluster.toml")).ok();
    }
    assert_same_below(&dir.join("in"), &dir.join("back"));
}

#[test]
#[ignore = "needs root"]
fn two_hosts_need_not_have_one_clock() {
    let dir = scratch();
    let boot_id = dir.put("boot_id", "e5a1b2c3-0000-4000-8000-00000000f17c\n");
    assert_clocks_do_not_matter(Some(&boot_id));
}

#[test]
#[ignore = "needs root"]
fn two_containers_of_a_host_need_not_have_one_clock() {
    assert_clocks_do_not_matter(None);
}
