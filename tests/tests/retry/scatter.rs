//! PEs that die during a scatter.

use flitcast_tests::files::{fill, names};
use rustix::process::Signal;

use super::{Files, kill, numbers};

#[test]
fn an_interior_pe_dies_and_its_child_moves_up() {
    let files = Files::new(2);
    let (finished, before) = files.killing("scatter --retry 1 --format json", "p3", 1);
    assert!(!before.contains_key("p1"), "it goes after P2's");
    files.assert_there(&["p2", "p3", "p4"], &before);
    let finished = finished.with_code(1);
    finished.stderr_has(&[
        "P1 is dead (killed by signal 9 (SIGKILL)",
        "; going on without it: P2 moves to P0; ",
        " of 4 messages are missing",
        "error: a message was not delivered\n",
        &files.with_input_path("P1's message stays in ", 1),
        "\nto go on: flitcast resume ",
    ]);
    let report = finished.report();
    for (pointer, expected) in [
        ("/retries/0/left_out/0/pe", 1),
        ("/retries/0/moved/0/pe", 2),
        ("/retries/0/moved/0/from", 1),
        ("/retries/0/moved/0/to", 0),
        ("/undelivered/0/pe", 1),
    ] {
        assert_eq!(report.number(pointer), expected, "{pointer}");
    }
    assert!(numbers(&finished, "/retries/0/missing").contains(&1));
    let sent = numbers(&finished, "/retries/0/sent");
    assert!(!sent.contains(&1) && !sent.contains(&3), "{sent:?}");
    assert_eq!(report.list("/undelivered").len(), 1);
    assert_eq!(report.value("/undelivered/0/why"), "dead");
    let parents = report.list("/parents");
    assert!(parents[1].is_null() && parents[2] == 0, "{parents:?}");

    let before = files.there();
    let expected = "what is missing is of P1; --revive tries";
    files.resume("").fails(2, &[expected]);
    let revived = files.resume("--revive").ok();
    files.assert_complete(&before);
    revived.stderr_has(&["resuming with all PEs: 1 of 4 messages is missing"]);
    revived.prints(&["sent 1 of 1 that were missing: P1"]);
}

#[test]
fn a_leaf_dies_and_nobody_moves() {
    let files = Files::new(2);
    let (finished, before) = files.killing("scatter --retry 1", "p3", 4);
    assert!(!before.contains_key("p4"), "it goes after P2's");
    files.assert_there(&["p1", "p2", "p3"], &before);
    finished.fails(1, &["going on without it: 3 of 4 messages are missing"]);
    let stays = files.with_input_path("P4's message stays in ", 4);
    finished.prints(&[&stays, "tree.toml without P4 by fdf: 4 PEs"]);
}

#[test]
fn a_pe_that_falls_silent_is_left_out() {
    let files = Files::new(2);
    let line = "scatter --retry 1 --timeouts heartbeat=100ms,silence=1s";
    let running = files.start_on_tree(line);
    files.wait_for("p3");
    let before = files.there();
    running.pe(4).signal(Signal::STOP);
    let expected = [
        "P4 is dead (has been silent for ",
        "; going on without it: ",
    ];
    running.finish().fails(1, &expected);
    files.assert_there(&["p1", "p2", "p3"], &before);
    files.resume("--revive").ok();
    files.assert_complete(&before);
}

#[test]
fn a_pe_that_dies_with_its_message_delivered_misses_nothing() {
    let files = Files::new(2);
    let (finished, before) = files.killing("scatter --retry 1", "p3", 3);
    let expected = ["P3 is dead", "3 of 4 messages are missing"];
    finished.ok().stderr_has(&expected);
    files.assert_complete(&before);
}

#[test]
fn a_second_death_during_the_retry() {
    let both = "P1 is dead (killed by signal 9 (SIGKILL)), P4 is dead (killed";
    let moved = "going on without them: P2 moves to P0";
    let spent = "retry: it has been retried as often as --retry 1 says";
    for (retries, there, expected) in [
        (
            2,
            &["p2", "p3"][..],
            &[both, moved, "error: 2 messages were not delivered"][..],
        ),
        (1, &["p3"], &["error: P4 was killed by signal 9", spent]),
    ] {
        let files = Files::new(2);
        let mut running = files.start_on_tree(&format!("scatter --retry {retries}"));
        files.wait_for("p3");
        let before = files.there();
        kill(&running, 1);
        running.wait_for(&["P1 is dead", "going on"]);
        files.wait_for_more();
        kill(&running, 4);
        running.finish().fails(1, expected);
        files.assert_there(there, &before);
        let before = files.there();
        files.resume("--revive").ok();
        files.assert_complete(&before);
    }
}

#[test]
fn a_round_in_packets_is_resumed_in_packets() {
    let files = Files::new(2);
    let (finished, before) = files.killing("scatter --packets 200", "p3", 2);
    finished.with_code(1);
    let record = std::fs::read_to_string(files.record()).expect("it is a text");
    assert!(record.contains("\npackets = \"200\"\n"), "{record}");
    let resumed = files.resume("--revive -v").ok();
    files.assert_complete(&before);
    resumed.prints(&["200 packets a message"]);
}

/// The rules stand in the record.
#[test]
fn excluded_files_stay_excluded() {
    let files = Files::new(2);
    fill(&files.input().join("p1/some.tmp"), 10);
    let (finished, _) = files.killing("scatter --exclude *.tmp --exclude !p\"", "p3", 4);
    finished.with_code(1);
    files.resume("--revive").ok();
    assert_eq!(names(&files.output().join("p1")), ["some"]);
}
