//! Gossip, in which each PE has one file or folder that every other PE receives a copy of, and exchanges, in which
//! each PE has one for each other PE. `among_all` has what they share with other operations.

use std::fs;

use flitcast_tests::files::fill;
use flitcast_tests::pairs::Pairs;
use flitcast_tests::{refused, reported, rows, scratch};
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

/// A PE without an entry has an empty message, and one without a folder has none; it receives all others.
#[test]
fn a_missing_entry_is_an_empty_message() {
    for [operation, way] in rows(
        "
        gossip | --tree path:4
        gossip | --tree path:4 --ports multi
        gossip | --network complete:4 --algorithm dissemination
        exchange | --tree path:4
        exchange | --network complete:4
    ",
    ) {
        let files = Pairs::new(operation, 4);
        let is_exchange = operation == "exchange";
        let (folders, empty, all) = match is_exchange {
            false => (
                &[(1, 0)][..],
                (3, 0),
                vec![(1, 0), (1, 2), (1, 3), (3, 0), (3, 1), (3, 2)],
            ),
            true => (
                &[(0, 3), (3, 1), (3, 0)][..],
                (1, 2),
                vec![(0, 3), (1, 2), (3, 0), (3, 1)],
            ),
        };
        for pair in folders {
            fill(&files.entry(*pair).join("some"), 9000);
        }
        fill(&files.entry(empty), 0);
        if is_exchange {
            fs::create_dir(files.input().join("p2")).expect("the scratch folder is ours");
        }
        files.run(way).ok();
        files.assert_there(all);
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
fn a_matrix_gives_the_length_of_each_message() {
    let dir = scratch();
    dir.put("matrix.csv", "0,0,300000,5\n0,0,0,0\n7,0,0,70000\n0,0,1,0");
    for way in [
        "--tree path:4",
        "--network complete:4",
        "--network complete:4 --algorithm shifts",
    ] {
        let line = format!("exchange {way} --lengths @/matrix.csv --flit-size 4KiB");
        let messages = [300_000, 5, 7, 70_000, 1];
        assert_received(&dir.report(&line), &messages, &[7, 0, 300_001, 70_005]);
    }
}

#[test]
fn an_invalid_input_is_refused_before_anything_starts() {
    for [operation, entries, causes] in rows(
        "
        gossip | p4 notes | `p4` names no PE; this tree has p0..p3, `notes`
        exchange | p4/p1 p1/p9 | `p4` names no PE; this tree has p0..p3, `p1/p9` names no PE; this tree has p0..p3
        exchange | p2/p2 p3/notes | `p2/p2`: a PE has no message for itself, `p3/notes` names no PE
    ",
    ) {
        let files = Pairs::filled(operation, 4, |_| 10);
        for entry in entries.split(' ') {
            fill(&files.input().join(entry), 1);
        }
        let causes: Vec<&str> = causes.split(", ").collect();
        for way in ["--tree path:4", "--network complete:4"] {
            files.run(way).fails(2, &causes);
            assert!(!files.output().exists());
        }
    }
    let files = Pairs::new("exchange", 3);
    fill(&files.input().join("p1"), 1);
    files.run("--tree path:3").fails(2, &["in/p1"]);
}

#[test]
fn an_invalid_matrix_is_refused_before_anything_starts() {
    let dir = scratch();
    let matrix = dir.shown("matrix.csv");
    let line = format!("exchange --tree path:3 --lengths {matrix}");
    for [text, expected] in rows(
        "
        0,1,2 3,0,4 | row 1 has 3 columns, but the matrix has 2 rows
        0,1,2 3,0 5,6,0 | matrix.csv:2: row 2 has 2 columns
        0,1,2 3,4,5 6,7,0 | row 2, column 2 (P1 to P1): 4 bytes of a PE for itself; the diagonal is 0
        0,1 1,0 | 2 rows and columns, but there are 3 PEs
        0,x,0 0,0,0 0,0,0 | (P0 to P1): `x` is not a number of bytes
    ",
    ) {
        dir.put("matrix.csv", text.replace(' ', "\n") + "\n");
        refused(&line, &["--lengths: ", expected]);
    }
    refused(&format!("{line} --size 5"), &["choose one"]);
}
