//! A message that is cut off: what has arrived of it is not sent again.

use std::fs;
use std::path::PathBuf;

use flitcast_tests::files::fill;
use flitcast_tests::processes::until;
use flitcast_tests::{Finished, Running, resume};
use rustix::process::Signal;

use super::interrupted::{CASES, Case, Place};

/// The length of the long message, which takes two seconds on its links.
const LONG: usize = 6 << 20;
const LINK: &str = "rate=24mbit";

/// The ends of a run: a signal to the coordinator, its death, the death of all processes at once.
const ENDS: [fn(Running); 3] = [
    |running| drop(running.interrupt()),
    |running| drop(running.kill()),
    Running::kill_all,
];

/// Returns the long messages that have not arrived, with the bytes that are there.
fn partial(place: &Place) -> Vec<(PathBuf, u64)> {
    let hidden = place.outputs().into_iter();
    let partial = hidden.filter(|path| path.to_string_lossy().ends_with(".partial"));
    let bytes = |path: &PathBuf| {
        let files = [path.join("some"), path.join("model/some")].into_iter();
        let found = files.filter_map(|file| fs::metadata(file).ok());
        found.map(|file| file.len()).sum()
    };
    partial.map(|path| (path.clone(), bytes(&path))).collect()
}

/// Starts a run, and waits until three fifths of the long message have arrived wherever it arrives.
fn cut_at_three_fifths(place: &Place, more: &str) -> Running {
    let running = place.start("out", more);
    until("the long message arrives", || {
        let partial = partial(place);
        let is_far = |(_, bytes): &(PathBuf, u64)| *bytes > LONG as u64 * 3 / 5;
        !partial.is_empty() && partial.iter().all(is_far)
    });
    running
}

/// Checks that at most 45 % of the long message were sent again, wherever it was missing.
fn assert_continued(finished: &Finished, case: &Case) {
    let report = finished.report();
    let (all, line) = (report.list("/continued"), case.line);
    assert!(!all.is_empty(), "{line}: {}", finished.stdout);
    for continued in all {
        let bytes = |key: &str| continued[key].as_u64().expect("it is a number");
        let sent = bytes("bytes") - bytes("arrived_before");
        assert!(sent * 100 <= bytes("bytes") * 45, "{line}: {continued}");
        assert!(bytes("bytes") >= LONG as u64, "{continued}");
    }
}

#[test]
fn received_parts_of_a_message_are_not_sent_again() {
    // One copy after the other leaves nothing that all PEs have.
    let broadcast = Case {
        line: "broadcast",
        ..CASES[2]
    };
    let [scatter, gather, _, gossip, exchange] = CASES;
    let cases = [scatter, gather, broadcast, gossip, exchange];
    for (at, (case, end)) in cases.iter().zip(ENDS.iter().cycle()).enumerate() {
        let place = Place::with(case, LONG, LINK);
        end(cut_at_three_fifths(&place, ""));
        // The same command continues the job, as `resume` does.
        let again = match at % 2 {
            0 => place.run("out", "--format json"),
            _ => resume(&place.record(), "--format json"),
        };
        assert_continued(&again.ok(), case);
        place.assert_complete();
    }
}

/// A PE dies that has nothing to do with the long message.
#[test]
fn a_retry_continues_partial_messages() {
    let place = Place::with(&CASES[0], LONG, LINK);
    let running = cut_at_three_fifths(&place, "--retry 1 --format json");
    running.pe(3).signal(Signal::KILL);
    assert_continued(&running.finish().ok(), &CASES[0]);
    place.assert_complete();
}

/// The digest of what is there is compared with the source's.
#[test]
fn a_damaged_part_is_sent_again() {
    let place = Place::with(&CASES[0], LONG, LINK);
    cut_at_three_fifths(&place, "").kill_all();
    for (path, _) in partial(&place) {
        let file = path.join("some");
        let mut content = fs::read(&file).expect("it is there");
        content[1000] ^= 1;
        fs::write(&file, content).expect("it can be written");
    }
    let again = place.run("out", "--format json").ok();
    assert!(again.report().list("/continued").is_empty());
    place.assert_complete();
}

/// A prefix of another version of a message is not a part of the new version.
#[test]
fn a_source_that_changed_is_refused_or_sent_as_a_whole() {
    let place = Place::with(&CASES[0], LONG, LINK);
    cut_at_three_fifths(&place, "").kill_all();
    fill(&place.path("in").join("p1/some"), LONG + 7);
    let record = place.record();
    let refused = resume(&record, "");
    assert_ne!(refused.code, Some(0), "{}", refused.stdout);
    refused.stderr_has(&["p1", "--force"]);
    let forced = resume(&record, "--force --format json").ok();
    assert!(forced.report().list("/continued").is_empty());
    place.assert_complete();
}

/// When no command can continue with them any more, partial messages are removed.
#[test]
fn without_a_record_nothing_is_kept() {
    let place = Place::with(&CASES[0], LONG, LINK);
    cut_at_three_fifths(&place, "").kill_all();
    assert!(!partial(&place).is_empty());
    fs::remove_file(place.record()).expect("it is there");
    place.run("out", "--force").ok();
    place.assert_complete();
}
