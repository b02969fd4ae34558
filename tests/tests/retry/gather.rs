//! PEs that die during a gather.

use std::fs;

use super::{Files, LINK, kill, numbers};

#[test]
fn an_interior_pe_dies_with_its_own_message() {
    let files = Files::new(2);
    let (finished, before) = files.killing("gather --retry 1 --format json", "p1", 2);
    files.assert_there(&["p1", "p3", "p4"], &before);
    let still = files.with_input_path("P2's message is still at P2 in ", 2);
    finished.fails(1, &["P3 moves to P1", &still]);
    assert!(!numbers(&finished, "/retries/0/sent").contains(&1));
    files.resume("--revive").ok();
    files.assert_complete(&before);
}

#[test]
fn an_interior_pe_may_die_after_its_message_has_arrived() {
    let files = Files::new(2);
    let (finished, before) = files.killing("gather --retry 1", "p1", 1);
    finished.ok().stderr_has(&["P1 is dead", "P2 moves to P0"]);
    files.assert_complete(&before);
}

#[test]
fn a_path_without_one_is_a_path() {
    let files = Files::new(2);
    let line = "gather --tree path:5 --retry 1 --format json";
    let running = files.start(&format!("{line} {LINK}"));
    files.wait_for("p1");
    let before = files.there();
    kill(&running, 1);
    let finished = running.finish().ok();
    assert_eq!(finished.report().value("/algorithm"), "shoulder-tap");
    files.assert_complete(&before);
}

#[test]
fn what_failed_is_resumed_without_the_dead_and_then_with_them() {
    let files = Files::new(2);
    let (failed, _) = files.killing("gather", "p1", 2);
    let before = files.there();
    let record = files.record();
    let shown = format!("\nto go on: flitcast resume {}\n", record.display());
    failed.fails(1, &["error: P2 was killed by signal 9", &shown]);

    let without = files.resume("--format json");
    without.fails(1, &["P2 is dead", "; resuming without it: P3 moves to P1"]);
    assert_eq!(files.record(), record);
    files.assert_there(&["p1", "p3", "p4"], &before);
    let report = without.report();
    assert_eq!(report.value("/record"), record.to_str().expect("UTF-8"));

    // Sources of delivered messages may be missing.
    let before = files.there();
    let (here, away) = (files.input().join("p1"), files.input().join("../away"));
    fs::rename(&here, &away).expect("it is there");
    files.resume("--revive").ok();
    fs::rename(&away, &here).expect("it is there");
    files.assert_complete(&before);
}
