//! Rounds of real processes whose messages are divided into packets.

use std::path::Path;

use flitcast_tests::files::{assert_same, assert_same_below, fill, snapshot};
use flitcast_tests::{Report, reported, scratch};

const TREES: [(&str, usize); 3] = [("path:5", 5), ("star:4", 4), ("random:7:3", 7)];
const PACKETS: [&str; 4] = ["1", "3", "7KiB", "auto"];

fn lengths(pes: usize) -> Vec<usize> {
    let kinds = [100_001, 1, 65_536, 0, 7_168, 300_000];
    kinds.into_iter().cycle().take(pes - 1).collect()
}

#[track_caller]
fn report(line: &str) -> Report {
    let report = reported(line);
    // In a broadcast each byte counts once and arrives at all PEs.
    if report.value("/operation") != "broadcast" {
        report.assert_all_arrived();
    }
    report
}

#[test]
fn files_arrive_byte_for_byte() {
    for (tree, pes) in TREES {
        let dir = scratch();
        let path = |name: &str| dir.join(name);
        for (pe, bytes) in (1..).zip(lengths(pes)) {
            if bytes > 0 {
                fill(&path(&format!("input/p{pe}/data")), bytes);
            }
        }
        let before = snapshot(&path("input"));
        let moved = |operation: &str, [from, to]: [&Path; 2], packets: &str| {
            let (from, to) = (from.display(), to.display());
            let paths = format!("--input {from} --output {to}");
            report(&format!(
                "{operation} --tree {tree} {paths} --packets {packets}"
            ));
        };
        moved("scatter", [&path("input"), &path("mixed")], "mixed");
        assert_same(&before, &snapshot(&path("mixed")));
        for packets in PACKETS {
            let at = |name: &str| path(&format!("{name}-{packets}"));
            moved("scatter", [&path("input"), &at("scattered")], packets);
            assert_same(&before, &snapshot(&at("scattered")));
            moved("gather", [&at("scattered"), &at("gathered")], packets);
            assert_same(&before, &snapshot(&at("gathered")));
            moved("broadcast", [&path("input/p1"), &at("copies")], packets);
            for pe in 1..pes {
                assert_same_below(&path("input/p1"), &at("copies").join(format!("p{pe}")));
            }
        }
    }
}

#[test]
fn each_message_is_split_into_the_requested_number_of_packets() {
    for operation in ["scatter", "gather", "gather --algorithm certification"] {
        let line = format!("{operation} --tree path:4 --lengths 100001,0,30000 --packets 3");
        let report = report(&line);
        assert_eq!(report.value("/packets/asked"), "3");
        assert_eq!(report.number("/packets/count"), 6);
        assert_eq!(report.number("/packets/largest_bytes"), 33_334);
        assert_eq!(report.number("/flit_bytes"), 33_334);
        assert!(report.number("/round/peak_buffered_flits") <= 1, "{line}");
    }
    let report = report("broadcast --tree kary:2:5 --size 1000000 --packets 100000B");
    assert_eq!(report.number("/packets/count"), 10);
    assert_eq!(report.number("/packets/largest_bytes"), 100_000);
}

/// One long message over slow links: the best number of packets is large there, and small without
/// an advantage.
#[test]
fn the_best_number_is_found() {
    let slow = "--link rate=50mbit --packets auto";
    let line = format!("scatter --tree path:6 --lengths 0,0,0,0,256KiB {slow}");
    let long = report(&line);
    let packets = long.value("/packets");
    assert!(long.number("/packets/count") > 8, "{packets}");
    assert!(long.value("/flit_choice").is_null());
    let (packed, usual) = ("/packets/predicted_us", "/packets/usual_us");
    assert!(long.float(packed) < long.float(usual), "{packets}");
}

/// Flits of several messages go in one packet if packets have a set-up time.
#[test]
fn short_messages_share_packets() {
    let line = "scatter --tree kary:2:16 --size 1KiB --link setup=20ms --packets mixed";
    let mixed = report(line);
    assert_eq!(mixed.value("/packets/asked"), "mixed");
    let packets = mixed.value("/packets");
    assert!(mixed.number("/packets/count") < 15, "{packets}");
    let (packed, usual) = ("/packets/predicted_us", "/packets/usual_us");
    assert!(mixed.float(packed) < mixed.float(usual), "{packets}");
}
