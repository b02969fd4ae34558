//! Gossip: each PE has one file or folder, of which every other PE receives a copy.

use std::fs;

use flitcast_tests::files::fill;
use flitcast_tests::pairs::Pairs;
use flitcast_tests::report::Report;
use flitcast_tests::{parsed, printed, refused, run, scratch};
use serde_json::Value;

/// Slow enough to kill a PE during a round.
const SLOW: &str = "--link rate=40mbit,latency=5ms --flit-size 16KiB";

/// Creates messages of which that of one PE is long.
fn with_long(pes: u32, long: u32) -> Pairs {
    Pairs::filled("gossip", pes, |(from, _)| match from == long {
        true => 2 << 20,
        false => 20_000 + 1000 * from as usize,
    })
}

/// Checks that every PE received the messages of all others, as predicted and as measured.
#[track_caller]
fn assert_all_have(report: &Report, bytes: &[u64]) {
    assert_eq!(report.value("/operation"), "gossip");
    let sum: u64 = bytes.iter().sum();
    assert_eq!(report.number("/round/bytes"), sum, "a message counts once");
    let messages = bytes.iter().filter(|bytes| **bytes > 0).count() as u64;
    assert_eq!(report.number("/round/messages"), messages);
    assert_eq!(report.list("/pes").len(), bytes.len());
    for (pe, own) in bytes.iter().enumerate() {
        let of = |what: &str| format!("/pes/{pe}/{what}");
        assert_eq!(report.number(&of("bytes")), sum - own, "P{pe}");
        assert!(report.float(&of("predicted_us")) > 0.0, "P{pe}");
        assert!(report.float(&of("measured_us/median")) > 0.0, "P{pe}");
        let all = report.float("/round/measured_us/max");
        assert!(report.float(&of("measured_us/max")) <= all, "P{pe}");
    }
}

#[test]
fn everybody_gets_a_copy_of_what_all_others_have() {
    for (way, algorithm) in [
        ("--tree kary:2:6", "flood"),
        ("--tree path:6 --algorithm flood", "flood"),
        ("--network ring:6 --algorithm flood", "flood"),
        ("--network complete:6 --algorithm circulate", "circulate"),
        (
            "--network complete:6 --algorithm dissemination",
            "dissemination",
        ),
        ("--network complete:6 --algorithm direct", "direct"),
        ("--network complete:6 --algorithm flood", "flood"),
        ("--network ring:6 --algorithm halves", "halves"),
        ("--network mesh:2x3 --algorithm approach1", "approach1"),
        (
            "--network ring:6 --algorithm circgos:2,3,2",
            "circgos:2,3,2",
        ),
        ("--network complete:6 --algorithm neighbour", "neighbour"),
        ("--tree kary:2:6 --ports multi", "flood"),
        (
            "--network ring:6 --algorithm approach1 --ports multi",
            "approach1",
        ),
        (
            "--network ring:6 --algorithm halves --ports multi",
            "halves",
        ),
        (
            "--network mesh:2x3 --algorithm approach2:2 --ports multi",
            "approach2:2",
        ),
    ] {
        let files = Pairs::filled("gossip", 6, |(from, _)| 1 + 30_000 * from as usize);
        let line = format!("{way} --flit-size 4KiB --format json");
        let report = files.run(&line).ok().report();
        files.assert_there(files.all());
        assert_eq!(report.value("/algorithm"), algorithm, "{way}");
        assert_eq!(report.number("/round/messages"), 6, "{way}");
    }
}

/// All messages arrive with any choice.
#[test]
fn auto_takes_what_is_predicted_to_be_the_quickest() {
    for (site, is_any) in [
        ("--tree star:5", &["flood"][..]),
        (
            "--network complete:5",
            &["flood", "circulate", "dissemination", "direct", "approach1"],
        ),
    ] {
        let files = Pairs::filled("allgather", 5, |_| 40_000);
        let report = files.run(&format!("{site} --algorithm auto --format json"));
        let report = report.ok().report();
        files.assert_there(files.all());
        let chosen = report.value("/choice/chosen/algorithm");
        assert_eq!(report.value("/algorithm"), chosen);
        assert!(is_any.iter().any(|name| chosen == name), "{chosen}");
    }
}

/// A cluster file that defines the network of its PEs permits the same algorithms as that network.
#[test]
fn auto_knows_the_network_of_a_cluster_file() {
    let dir = scratch();
    let file = dir.path().join("cluster.toml");
    let pes = |pe: u32| format!("[[pe]]\nname = \"n{pe}\"\naddress = \"127.0.0.1\"\n");
    let pes: String = (0..6).map(pes).collect();
    fs::write(&file, format!("[network]\nkind = \"ring:6\"\n{pes}")).expect("it can be written");
    let ways = |site: &str| {
        let line = format!("gossip {site} --algorithm auto --size 1KiB --format json");
        run(line.split(' ')).ok().report().number("/choice/ways")
    };
    let of_tree = ways("--tree kary:2:6");
    let of_network = ways("--network ring:6");
    assert!(of_network > of_tree, "{of_network} and {of_tree}");
    assert_eq!(ways(&format!("--cluster {}", file.display())), of_network);
}

/// A PE without an entry has an empty message, and receives all others.
#[test]
fn a_missing_entry_is_an_empty_message() {
    for way in [
        "--tree path:4",
        "--tree path:4 --ports multi",
        "--network complete:4 --algorithm dissemination",
    ] {
        let files = Pairs::new("gossip", 4);
        fill(&files.input().join("p1/some"), 9000);
        fill(&files.input().join("p3"), 0);
        files.run(way).ok();
        files.assert_there(vec![(1, 0), (1, 2), (1, 3), (3, 0), (3, 1), (3, 2)]);
    }
}

#[test]
fn messages_that_are_no_files_arrive_in_every_round() {
    for line in [
        "gossip --tree kary:3:5",
        "allgather --network complete:5",
        "gossip --network complete:5 --algorithm dissemination --flit-size 4KiB",
        "gossip --network complete:5 --algorithm direct",
    ] {
        let line = format!("{line} --size 100KiB --rounds 3 --format json");
        let report = run(line.split(' ')).ok().report();
        assert_all_have(&report, &[100 << 10; 5]);
        assert_eq!(report.number("/rounds"), 3);
    }
    let shown = printed("gossip --tree path:3 --size 1MiB");
    assert_eq!(
        shown.matches("  2 MiB  ").count(),
        3,
        "P0 as all others:\n{shown}"
    );
}

/// The first length is P0's.
#[test]
fn each_has_a_length_of_its_own() {
    for way in ["--tree path:4", "--network complete:4"] {
        let line = format!("gossip {way} --lengths 300KiB,0,5,64KiB --format json");
        let report = run(line.split(' ')).ok().report();
        assert_all_have(&report, &[300 << 10, 0, 5, 64 << 10]);
    }
    let alone = "gossip --tree star:3 --lengths 0,7KiB,0 --format json";
    let report = run(alone.split(' ')).ok().report();
    assert_eq!(report.number("/round/messages"), 1);
    assert_eq!(
        report.value("/pes/1/measured_us"),
        &Value::Null,
        "nobody tells P1"
    );
    for nothing in ["--tree path:3 --size 0", "--network complete:1 --size 5"] {
        let report = parsed(&format!("gossip {nothing} --format json"));
        assert_eq!(report["round"]["messages"], 0);
    }
}

/// The messages of all other PEs cross the busiest edge once, with any algorithm.
#[test]
fn links_are_as_slow_as_they_are_to_be() {
    let [bytes, ns_per_byte] = [64 << 10, 40];
    for way in [
        "--tree path:4",
        "--network complete:4 --algorithm circulate",
        "--network complete:4 --algorithm dissemination",
        "--network complete:4 --algorithm direct",
    ] {
        let link = "--link rate=200mbit,latency=1ms";
        let line = format!("gossip {way} --size 64KiB {link} --format json");
        let report = run(line.split(' ')).ok().report();
        assert_all_have(&report, &[bytes; 4]);
        for edge in report.list("/edges") {
            assert_eq!(
                edge["shaped"]["up"]["ns_per_byte"],
                f64::from(ns_per_byte as u32)
            );
        }
        let least_us = (3 * bytes * ns_per_byte) as f64 / 1000.0;
        assert!(report.float("/round/predicted_us") > least_us, "{way}");
    }
}

#[test]
fn copies_arrive_over_tls() {
    for way in [
        "--tree kary:2:4",
        "--network complete:4",
        "--network ring:4 --algorithm halves",
    ] {
        let files = Pairs::filled("gossip", 4, |_| 200_000);
        let keys = files.dir().join("ca").display().to_string();
        run(["ca", "init", &keys, "--pes", "4"]).ok();
        let finished = files.run(&format!("{way} --credentials {keys}")).ok();
        assert!(finished.stdout.contains("TLS 1.3 both ways"));
        files.assert_there(files.all());
    }
}

#[test]
fn what_cannot_be_gossiped_is_told_before_anything_begins() {
    let files = Pairs::filled("gossip", 4, |_| 10);
    fill(&files.input().join("p4"), 1);
    fill(&files.input().join("notes"), 1);
    let finished = files.run("--tree path:4");
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    for told in ["`p4` names no PE; this tree has p0..p3", "`notes`"] {
        assert!(finished.stderr.contains(told), "{}", finished.stderr);
    }
    assert!(!files.output().exists());
    let lengths = "4 needed: one for each PE from P0 to P3";
    refused(
        "gossip --tree path:4 --lengths 1,2,3",
        &["3 length(s) given", lengths],
    );
    refused(
        "gossip --network complete:4 --lengths 1,2,3,4,5",
        &["5 length(s) given", lengths],
    );
    for algorithm in ["circulate", "dissemination", "direct"] {
        refused(
            &format!("gossip --tree path:4 --algorithm {algorithm} --size 5"),
            &[
                &format!("--algorithm {algorithm} is for PEs that can all reach each other"),
                "path:4 does not promise: use --network complete:N",
            ],
        );
    }
    refused(
        "gossip --tree path:4 --algorithm bruck --size 5",
        &[
            "--algorithm bruck: `bruck` is not a gossip algorithm",
            "flood, over any tree",
        ],
    );
    refused(
        "gossip --tree path:4 --algorithm ring-emulation --size 5",
        &["ring-emulation is only planned: use `flitcast plan gossip`"],
    );
    refused(
        "gossip --tree path:4 --algorithm halves --size 5",
        &["--algorithm halves: it is for networks: use --network ring:N"],
    );
    refused(
        "gossip --network ring:5 --algorithm circgos:9,1,0 --lengths 5",
        &[
            "A is 9; it must be from 1 to 5",
            "a is 1; it must",
            "1 length(s)",
        ],
    );
    refused(
        "gossip --network complete:4 --size 5 --ports multi",
        &[
            "--ports multi: circulate uses one port at a time",
            "over all links at once go fdf, certification, flood and tree",
        ],
    );
    refused("gossip --tree path:4", &["there is nothing to send"]);
    refused("gossip --tree path:4 --size 5 --from P2", &["'--from'"]);
}

/// The survivors have each other's messages. On the ring of five the tree is P3 - P4 - P0 - P1 -
/// P2.
#[test]
fn a_leaf_that_dies_is_left_out() {
    for (way, dies) in [
        ("--tree kary:2:5", 4),
        ("--network ring:5 --algorithm halves", 3),
    ] {
        let files = with_long(5, 2);
        let finished = files
            .kill(dies, &format!("{way} {SLOW} --retry 1"))
            .finish();
        let told = format!("P{dies} is dead (killed by signal 9");
        finished.says(&[&told, "going on without it"]);
        files.assert_resumed(&finished, &files.among(|pe| pe != dies));
    }
}

/// The PEs below it move up, with relays of all kinds.
#[test]
fn a_relay_that_dies_is_gone_around() {
    for way in [
        "--tree path:4",
        "--network complete:4 --algorithm circulate",
        "--network complete:4 --algorithm dissemination",
        "--network complete:4 --algorithm neighbour",
    ] {
        let files = with_long(4, 3);
        let finished = files.kill(1, &format!("{way} {SLOW} --retry 1")).finish();
        finished.says(&["P1 is dead (killed by signal 9", "going on without it"]);
        files.assert_resumed(&finished, &files.among(|pe| pe != 1));
    }
}

/// The round is over, and no partial files are left; missing messages can be delivered later.
#[test]
fn without_p0_nothing_can_be_repaired_but_resumed() {
    for way in [
        "--network complete:4 --algorithm circulate",
        "--tree kary:2:4",
        "--network ring:4 --algorithm approach1",
    ] {
        let files = with_long(4, 1);
        let finished = files.kill(0, &format!("{way} {SLOW} --retry 1")).finish();
        finished.says(&["error: P0 was killed by signal 9", "retry: P0 is the root"]);
        files.assert_resumed(&finished, &[]);
    }
}
