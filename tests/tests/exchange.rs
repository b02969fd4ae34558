//! Exchanges: each PE has a file or folder for each other PE.

use std::fs;

use flitcast_tests::files::fill;
use flitcast_tests::pairs::Pairs;
use flitcast_tests::report::Report;
use flitcast_tests::{parsed, printed, refused, refused_each, reported, scratch};
use serde_json::Value;

/// Checks that every PE received its column of these lengths, as predicted and as measured.
#[track_caller]
fn assert_all_have(report: &Report, rows: &[&[u64]]) {
    assert_eq!(report.value("/operation"), "exchange");
    let all = || rows.iter().flat_map(|row| row.iter());
    assert_eq!(report.number("/round/bytes"), all().sum::<u64>());
    let messages = all().filter(|bytes| **bytes > 0).count() as u64;
    assert_eq!(report.number("/round/messages"), messages);
    assert_eq!(report.list("/pes").len(), rows.len());
    for pe in 0..rows.len() {
        let of = |what: &str| format!("/pes/{pe}/{what}");
        let bytes: u64 = rows.iter().map(|row| row[pe]).sum();
        assert_eq!(report.number(&of("bytes")), bytes, "P{pe}");
        if bytes == 0 {
            assert_eq!(report.value(&of("measured_us")), &Value::Null, "P{pe}");
            continue;
        }
        assert!(report.float(&of("predicted_us")) > 0.0, "P{pe}");
        assert!(report.float(&of("measured_us/median")) > 0.0, "P{pe}");
        let all = report.float("/round/measured_us/max");
        assert!(report.float(&of("measured_us/max")) <= all, "P{pe}");
    }
}

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
fn messages_that_are_no_files_arrive_in_every_round() {
    for line in [
        "exchange --tree kary:3:4",
        "alltoall --network complete:4",
        "exchange --network complete:4 --algorithm shifts --flit-size 4KiB",
        "exchange --network complete:4 --algorithm tree",
    ] {
        let report = reported(&format!("{line} --size 100KiB --rounds 3"));
        let m = 100 << 10;
        let rows: [&[u64]; 4] = [&[0, m, m, m], &[m, 0, m, m], &[m, m, 0, m], &[m, m, m, 0]];
        assert_all_have(&report, &rows);
        assert_eq!(report.number("/rounds"), 3);
    }
    let shown = printed("exchange --tree path:3 --size 1MiB");
    let count = shown.matches("  2 MiB  ").count();
    assert_eq!(count, 3, "P0 as all others:\n{shown}");
}

#[test]
fn a_matrix_says_what_each_has_for_each() {
    let rows: [&[u64]; 4] = [
        &[0, 0, 300_000, 5],
        &[0, 0, 0, 0],
        &[7, 0, 0, 70_000],
        &[0, 0, 1, 0],
    ];
    let dir = scratch();
    let lines = rows.map(|row| row.iter().map(u64::to_string).collect::<Vec<_>>().join(","));
    dir.put("matrix.csv", lines.join("\n"));
    for way in [
        "--tree path:4",
        "--network complete:4",
        "--network complete:4 --algorithm shifts",
    ] {
        let line = format!("exchange {way} --lengths @/matrix.csv --flit-size 4KiB");
        assert_all_have(&dir.report(&line), &rows);
    }
    for nothing in ["--tree path:3 --size 0", "--network complete:1 --size 5"] {
        let report = parsed(&format!("exchange {nothing} --format json"));
        assert_eq!(report["round"]["messages"], 0);
    }
}

/// The busiest port takes the time for its bytes, with any algorithm.
#[test]
fn links_are_as_slow_as_they_are_to_be() {
    let (bytes, ns_per_byte) = (64 << 10, 40_u32);
    for (way, crossings) in [
        // Two PEs after the middle edge, for each of the two before it.
        ("--tree path:4", 4),
        ("--network complete:4 --algorithm rounds", 3),
        ("--network complete:4 --algorithm shifts", 3),
    ] {
        let link = "--link rate=200mbit,latency=1ms";
        let report = reported(&format!("exchange {way} --lengths equal:64KiB {link}"));
        assert_eq!(report.number("/round/bytes"), 12 * bytes);
        for edge in report.list("/edges") {
            let shaped = &edge["shaped"]["down"]["ns_per_byte"];
            assert_eq!(*shaped, f64::from(ns_per_byte));
        }
        let least_us = (crossings * bytes * u64::from(ns_per_byte)) as f64 / 1000.0;
        assert!(report.float("/round/predicted_us") > least_us, "{way}");
    }
}

#[test]
fn an_input_that_is_none_is_told_before_anything_begins() {
    let files = Pairs::filled("exchange", 4, |_| 10);
    for entry in ["p4/p1", "p1/p9", "p2/p2", "p3/notes"] {
        fill(&files.input().join(entry), 1);
    }
    for way in ["--tree path:4", "--network complete:4"] {
        let told = [
            "`p4` names no PE; this tree has p0..p3",
            "`p1/p9` names no PE; this tree has p0..p3",
            "`p2/p2`: a PE has no message for itself",
            "`p3/notes` names no PE",
        ];
        files.run(way).fails(2, &told);
        assert!(!files.output().exists());
    }
    let files = Pairs::new("exchange", 3);
    fill(&files.input().join("p1"), 1);
    files.run("--tree path:3").fails(2, &["in/p1"]);
}

#[test]
fn a_matrix_that_is_none_is_told_before_anything_begins() {
    let dir = scratch();
    let matrix = dir.shown("matrix.csv");
    let line = format!("exchange --tree path:3 --lengths {matrix}");
    for (text, told) in [
        (
            "0,1,2\n3,0,4\n",
            "row 1 has 3 columns, but the matrix has 2 rows",
        ),
        ("0,1,2\n3,0\n5,6,0\n", "matrix.csv:2: row 2 has 2 columns"),
        (
            "0,1,2\n3,4,5\n6,7,0\n",
            "row 2, column 2 (P1 to P1): 4 bytes of a PE for itself; the diagonal is 0",
        ),
        ("0,1\n1,0\n", "2 rows and columns, but there are 3 PEs"),
        (
            "0,x,0\n0,0,0\n0,0,0\n",
            "(P0 to P1): `x` is no number of bytes",
        ),
    ] {
        dir.put("matrix.csv", text);
        refused(&line, &["--lengths: ", told]);
    }
    refused_each(
        "exchange --tree path:3 --lengths",
        "
        1,2,3 | name a file with a row for each sender, or write equal:MEAN
        /no/matrix | /no/matrix
    ",
    );
    refused(&format!("{line} --size 5"), &["choose one"]);
}

#[test]
fn algorithms_that_do_not_fit_are_told() {
    for algorithm in ["rounds", "shifts"] {
        refused(
            &format!("exchange --tree path:4 --algorithm {algorithm} --size 5"),
            &[
                &format!("--algorithm {algorithm} is for PEs that can all reach each other"),
                "path:4 does not promise: use --network complete:N",
            ],
        );
    }
    refused_each("exchange", "
        --network complete:4 --algorithm bruck --size 5 | 'bruck' for '--algorithm | rounds, shifts, tree, at-once, auto
        --tree path:4 | there is nothing to send
    ");
}
