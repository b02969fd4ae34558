//! PEs that die during a scatter.

use rustix::process::Signal;

use super::{Files, kill, numbers};

#[test]
fn an_interior_pe_dies_and_its_child_moves_up() {
    let files = Files::new(2);
    let running = files.start_on_tree("scatter", &["--retry", "1", "--format", "json"]);
    files.wait_for(&["p3"]);
    let before = files.there();
    assert!(!before.contains_key("p1"), "it goes after P2's");
    kill(&running, 1);
    let finished = running.finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    files.assert_there(&["p2", "p3", "p4"], &before);
    let stays = files.says_input("P1's message stays in ", 1);
    finished.says(&[
        "P1 is dead (killed by signal 9 (SIGKILL)",
        "; going on without it: P2 moves to P0; ",
        " of 4 messages are missing",
        "error: a message was not delivered\n",
        &stays,
        "\nto go on: flitcast resume ",
    ]);
    let report = finished.report();
    assert_eq!(report.number("/retries/0/left_out/0/pe"), 1);
    assert_eq!(report.number("/retries/0/moved/0/pe"), 2);
    assert_eq!(report.number("/retries/0/moved/0/from"), 1);
    assert_eq!(report.number("/retries/0/moved/0/to"), 0);
    assert!(numbers(&finished, "/retries/0/missing").contains(&1));
    let sent = numbers(&finished, "/retries/0/sent");
    assert!(!sent.contains(&1) && !sent.contains(&3), "{sent:?}");
    assert_eq!(report.list("/undelivered").len(), 1);
    assert_eq!(report.number("/undelivered/0/pe"), 1);
    assert_eq!(report.value("/undelivered/0/why"), "dead");
    let parents = report.list("/parents");
    assert!(parents[1].is_null() && parents[2] == 0, "{parents:?}");

    let before = files.there();
    let refused = files.resume(&[]);
    refused.fails(2, &["what is missing is of P1; --revive tries"]);
    let revived = files.resume(&["--revive"]).ok();
    files.assert_complete(&before);
    revived.says(&["resuming with all PEs: 1 of 4 messages is missing"]);
    assert!(revived.stdout.contains("sent 1 of 1 that were missing: P1"));
}

#[test]
fn a_leaf_dies_and_nobody_moves() {
    let files = Files::new(2);
    let running = files.start_on_tree("scatter", &["--retry", "1"]);
    files.wait_for(&["p3"]);
    let before = files.there();
    assert!(!before.contains_key("p4"), "it goes after P2's");
    kill(&running, 4);
    let finished = running.finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    files.assert_there(&["p1", "p2", "p3"], &before);
    finished.says(&["going on without it: 3 of 4 messages are missing"]);
    let stays = files.says_input("P4's message stays in ", 4);
    assert!(finished.stdout.contains(&stays), "{}", finished.stdout);
    let without = "tree.toml without P4: 4 PEs, fdf";
    assert!(finished.stdout.contains(without), "{}", finished.stdout);
}

#[test]
fn a_pe_that_falls_silent_is_left_out() {
    let files = Files::new(2);
    let limits = ["--timeouts", "heartbeat=100ms,silence=1s"];
    let running = files.start_on_tree("scatter", &[&["--retry", "1"], &limits[..]].concat());
    files.wait_for(&["p3"]);
    let before = files.there();
    running.pe(4).signal(Signal::STOP);
    let finished = running.finish();
    finished.fails(
        1,
        &[
            "P4 is dead (has been silent for ",
            "; going on without it: ",
        ],
    );
    files.assert_there(&["p1", "p2", "p3"], &before);
    files.resume(&["--revive"]).ok();
    files.assert_complete(&before);
}

#[test]
fn who_dies_with_its_message_delivered_misses_nothing() {
    let files = Files::new(2);
    let running = files.start_on_tree("scatter", &["--retry", "1"]);
    files.wait_for(&["p3"]);
    let before = files.there();
    kill(&running, 3);
    let finished = running.finish().ok();
    finished.says(&["P3 is dead", "3 of 4 messages are missing"]);
    files.assert_complete(&before);
}

#[test]
fn a_second_death_during_the_retry() {
    for (retries, code_delivers) in [("2", true), ("1", false)] {
        let files = Files::new(2);
        let mut running = files.start_on_tree("scatter", &["--retry", retries]);
        files.wait_for(&["p3"]);
        let before = files.there();
        kill(&running, 1);
        running.wait_for(&["P1 is dead", "going on"]);
        files.wait_for_more();
        kill(&running, 4);
        let finished = running.finish();
        assert_eq!(finished.code, Some(1), "{}", finished.stderr);
        match code_delivers {
            true => {
                files.assert_there(&["p2", "p3"], &before);
                let both = "P1 is dead (killed by signal 9 (SIGKILL)), P4 is dead (killed";
                finished.says(&[both, "going on without them: P2 moves to P0"]);
                finished.says(&["error: 2 messages were not delivered"]);
            }
            false => {
                files.assert_there(&["p3"], &before);
                let spent = "retry: it has been retried as often as --retry 1 says";
                finished.says(&["error: P4 was killed by signal 9", spent]);
            }
        }
        let before = files.there();
        files.resume(&["--revive"]).ok();
        files.assert_complete(&before);
    }
}

#[test]
fn without_p0_nothing_can_be_repaired_but_resumed() {
    let files = Files::new(2);
    let running = files.start_on_tree("scatter", &["--retry", "3"]);
    files.wait_for(&["p3"]);
    let before = files.there();
    kill(&running, 0);
    let finished = running.finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let why = "retry: P0 is the root: nothing can be repaired without it";
    finished.says(&["error: P0 was killed by signal 9", why]);
    files.assert_there(&["p3"], &before);
    files.resume(&[]).ok();
    files.assert_complete(&before);
}

/// A resumed run sends the missing messages in packets again.
#[test]
fn what_went_in_packets_goes_on_in_packets() {
    let files = Files::new(2);
    let running = files.start_on_tree("scatter", &["--packets", "200"]);
    files.wait_for(&["p3"]);
    let before = files.there();
    kill(&running, 2);
    let finished = running.finish();
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let record = std::fs::read_to_string(files.record()).expect("it is a text");
    assert!(record.contains("\npackets = \"200\"\n"), "{record}");
    let resumed = files.resume(&["--revive"]).ok();
    files.assert_complete(&before);
    assert!(
        resumed.stdout.contains("200 packets a message"),
        "{}",
        resumed.stdout
    );
}
