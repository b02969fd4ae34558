//! Messages that count as delivered although their PE has died: those with a receipt.

use std::fs;

use flitcast_tests::files::{assert_same_below, fill, identity, names, record, set_mode};
use flitcast_tests::joining::{Joining, dismiss};
use flitcast_tests::processes::eventually;
use flitcast_tests::{resume, start};
use rustix::process::Signal;

use super::{Files, edit, kill};

#[test]
fn a_change_of_what_stood_before_delivers_nothing() {
    let files = Files::new(2);
    let output = files.output();
    for older in ["p1/old", "p4/old"] {
        fill(&output.join(older), 10);
    }
    let running = files.start_on_tree("scatter --force --retry 1");
    files.wait_for("p3");
    set_mode(&output.join("p4"), 0o700);
    fs::write(output.join("p1/new"), "by somebody").expect("it can be written");
    kill(&running, 4);
    let expected = ["P4 is dead", "without it: 3 of 4 messages are missing"];
    running.finish().fails(1, &expected);
    assert_eq!(names(&output.join("p4")), ["old"]);
    for pe in ["p1", "p2", "p3"] {
        assert_same_below(&files.input().join(pe), &output.join(pe));
    }
    let before = files.there();
    let before = before.into_iter().filter(|(name, _)| name != "p4");
    files.resume("--revive").ok();
    files.assert_complete(&before.collect());
}

/// An entry in the way is not a PE's failure, even if it appears during the round.
#[test]
fn output_that_appears_in_mid_round_excludes_no_pe() {
    let files = Files::new(2);
    let running = files.start_on_tree("scatter --retry 1");
    files.wait_for("p3");
    let other = files.output().join("p4");
    fill(&other.join("other"), 10);
    let failed = running.finish();
    let why = "retry: it is no PE's failure: leaving one out would not help";
    failed.fails(1, &["output/p4` exists already", why]);
    assert!(!failed.stderr.contains("is dead"), "{}", failed.stderr);
    let refused = files.resume("");
    refused.fails(2, &["output/p4 is there, and by the record P4's"]);
    assert_eq!(names(&other), ["other"]);
    fs::remove_dir_all(&other).expect("it is there");
    let before = files.there();
    files.resume("").ok();
    files.assert_complete(&before);
}

/// The record is out of date, because the coordinator was killed: messages delivered meanwhile have
/// receipts.
#[test]
fn a_resume_whose_coordinator_is_killed_is_resumed() {
    let files = Files::new(4);
    let (failed, _) = files.killing("scatter", "p1 p2 p3", 0);
    failed.with_code(1);
    let record = files.record();
    edit(&record, |text| {
        let at = text.find("delivered = [").expect("the list is there");
        let end = at + text[at..].find('\n').expect("it ends");
        format!("{}delivered = []{}", &text[..at], &text[end..])
    });
    for pe in ["p1", "p2", "p3"] {
        fs::remove_dir_all(files.output().join(pe)).expect("it is there");
    }
    let resumed = start(["resume".as_ref(), record.as_os_str()]);
    files.wait_for("p1 p2 p3");
    let before = files.there();
    resumed.kill();
    files.resume("").ok();
    files.assert_complete(&before);
}

/// P3 below P1, so that its message is sent first; P2's is long.
#[test]
#[ignore = "needs root"]
fn a_receipt_records_the_messages_of_another_host() {
    let cluster = Joining::new(&[0, 0, 1], "60s");
    for (pe, bytes) in [(1, 50_000), (2, 6 << 20), (3, 50_000)] {
        fill(&cluster.path(&format!("in/h{pe}/file")), bytes);
    }
    let out = |pe: u32| cluster.path(&format!("host{pe}/out"));
    let mut nodes: Vec<_> = (0..4)
        .map(|pe| cluster.node_apart(pe, "out", "--stay"))
        .collect();
    let scatter = "scatter --input DIR/in --output DIR/out --link rate=20mbit,latency=20ms";
    let running = cluster.guarded(scatter);
    let arrived = out(3).join("h3");
    eventually("P3 has its message, and P2's arrives", || {
        let arrives = names(&out(2)).iter().any(|name| name.ends_with(".partial"));
        (arrives && arrived.exists()).then_some(())
    });
    let victim = nodes.remove(3);
    victim.signal(Signal::KILL);
    running.finish().with_code(1);
    victim.finish();
    nodes.push(cluster.node_apart(3, "out", "--stay"));
    assert_eq!(names(&cluster.path("out")).len(), 1);
    let record = record(&cluster.path("out"));

    // An entry of another user is not the message, and must not be replaced.
    let away = out(3).join("away");
    fs::rename(&arrived, &away).expect("it is there");
    fill(&arrived.join("file"), 50_000);
    let other = identity(&arrived);
    resume(&record, "--revive").fails(2, &["/out/h3 at P3 h3\n"]);
    assert_eq!(identity(&arrived), other);

    fs::remove_dir_all(&arrived).expect("it is there");
    fs::rename(&away, &arrived).expect("it is there");
    let before = identity(&arrived);
    let resumed = resume(&record, "--revive").ok();
    resumed.prints(&["P3 h3 had it already"]);
    assert_eq!(identity(&arrived), before);
    for pe in 1..4 {
        let name = format!("h{pe}");
        assert_same_below(&cluster.path("in").join(&name), &out(pe).join(&name));
        assert_eq!(names(&out(pe)), [name], "nothing hidden is left");
    }
    assert_eq!(names(&cluster.path("out")), [""; 0]);
    dismiss(nodes);
}
