//! Exchanges: each PE has a file or folder for each other PE.

use std::fs;

use flitcast_tests::files::fill;
use flitcast_tests::pairs::Pairs;
use flitcast_tests::{refused, rows, scratch};

use super::among_all::assert_received;

/// A missing entry is an empty message, and a missing folder means that a PE has no messages.
#[test]
fn a_missing_entry_is_an_empty_message() {
    for way in ["--tree path:4", "--network complete:4"] {
        let files = Pairs::new("exchange", 4);
        for pair in [(0, 3), (3, 1), (3, 0)] {
            fill(&files.entry(pair).join("some"), 9000);
        }
        fill(&files.entry((1, 2)), 0);
        fs::create_dir(files.input().join("p2")).expect("the scratch folder is ours");
        files.run(way).ok();
        files.assert_there(vec![(0, 3), (1, 2), (3, 0), (3, 1)]);
    }
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
    let files = Pairs::filled("exchange", 4, |_| 10);
    for entry in ["p4/p1", "p1/p9", "p2/p2", "p3/notes"] {
        fill(&files.input().join(entry), 1);
    }
    for way in ["--tree path:4", "--network complete:4"] {
        let expected = [
            "`p4` names no PE; this tree has p0..p3",
            "`p1/p9` names no PE; this tree has p0..p3",
            "`p2/p2`: a PE has no message for itself",
            "`p3/notes` names no PE",
        ];
        files.run(way).fails(2, &expected);
        assert!(!files.output().exists());
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
