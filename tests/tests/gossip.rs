//! Gossip: each PE has one file or folder, of which every other PE receives a copy.

use flitcast_tests::files::fill;
use flitcast_tests::pairs::Pairs;
use flitcast_tests::{reported, scratch};
use serde_json::Value;

use super::among_all::assert_received;

/// A cluster file that defines the network of its PEs permits the same algorithms as that network.
#[test]
fn auto_knows_the_network_of_a_cluster_file() {
    let dir = scratch();
    let pes = |pe: u32| format!("[[pe]]\nname = 'n{pe}'\naddress = '127.0.0.1'\n");
    let pes: String = (0..6).map(pes).collect();
    dir.put("cluster.toml", format!("[network]\nkind = 'ring:6'\n{pes}"));
    let ways = |site: &str| {
        let report = dir.report(&format!("gossip {site} --algorithm auto --size 1KiB"));
        report.number("/choice/ways")
    };
    let of_tree = ways("--tree kary:2:6");
    let of_network = ways("--network ring:6");
    assert!(of_network > of_tree, "{of_network} and {of_tree}");
    assert_eq!(ways("--cluster @/cluster.toml"), of_network);
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

/// The first length is P0's.
#[test]
fn each_has_a_length_of_its_own() {
    for way in ["--tree path:4", "--network complete:4"] {
        let report = reported(&format!("gossip {way} --lengths 300KiB,0,5,64KiB"));
        let lengths = [300 << 10, 0, 5, 64 << 10];
        let sum: u64 = lengths.iter().sum();
        assert_received(&report, &lengths, &lengths.map(|own| sum - own));
    }
    let report = reported("gossip --tree star:3 --lengths 0,7KiB,0");
    assert_eq!(report.number("/round/messages"), 1);
    let of_p1 = report.value("/pes/1/measured_us");
    assert_eq!(of_p1, &Value::Null, "P1 receives nothing");
}

#[test]
fn an_invalid_input_is_refused_before_anything_starts() {
    let files = Pairs::filled("gossip", 4, |_| 10);
    fill(&files.input().join("p4"), 1);
    fill(&files.input().join("notes"), 1);
    let finished = files.run("--tree path:4").with_code(2);
    finished.stderr_has(&["`p4` names no PE; this tree has p0..p3", "`notes`"]);
    assert!(!files.output().exists());
}
