//! A message that is cut off: what has arrived of it is not sent again.

use std::fs;
use std::path::PathBuf;

use flitcast_tests::files::fill;
use flitcast_tests::processes::eventually;
use flitcast_tests::{Finished, Running, run};
use rustix::process::Signal;

use super::interrupted::{CASES, Case, Place};

/// The length of the long message, which takes two seconds on its links.
const LONG: usize = 6 << 20;
const LINK: &str = "rate=24mbit";

/// The ends of a run.
#[derive(Clone, Copy, Debug)]
enum End {
    /// A signal asks the coordinator to end.
    Interrupted,
    /// The coordinator is killed.
    CoordinatorKilled,
    /// All processes are killed at once.
    AllKilled,
}

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
#[track_caller]
fn cut_at_three_fifths(place: &Place, more: &[&str]) -> Running {
    let running = place.start("out", more);
    eventually("the long message arrives", || {
        let partial = partial(place);
        let is_far = |(_, bytes): &(PathBuf, u64)| *bytes > LONG as u64 * 3 / 5;
        (!partial.is_empty() && partial.iter().all(is_far)).then_some(())
    });
    running
}

#[track_caller]
fn end(running: Running, how: End) {
    match how {
        End::Interrupted => {
            running.signal(Signal::INT);
            running.finish();
        }
        End::CoordinatorKilled => {
            running.kill();
        }
        End::AllKilled => running.kill_all(),
    }
}

/// Checks that at most 45 % of the long message were sent again, wherever it was missing.
#[track_caller]
fn assert_continued(finished: &Finished, case: &Case) {
    let result: serde_json::Value = serde_json::from_str(&finished.stdout).expect("it is JSON");
    let all = result["continued"].as_array().expect("it is a list");
    assert!(!all.is_empty(), "{:?}: {}", case.words, finished.stdout);
    for continued in all {
        let bytes = |key: &str| continued[key].as_u64().expect("it is a number");
        let sent = bytes("bytes") - bytes("arrived_before");
        assert!(
            sent * 100 <= bytes("bytes") * 45,
            "{:?}: {continued}",
            case.words
        );
        assert!(bytes("bytes") >= LONG as u64, "{continued}");
    }
}

#[test]
fn what_has_arrived_of_a_message_is_not_sent_again() {
    let ends = [
        End::Interrupted,
        End::CoordinatorKilled,
        End::AllKilled,
        End::Interrupted,
        End::CoordinatorKilled,
    ];
    // One copy after the other leaves nothing that all PEs have.
    let broadcast = Case {
        words: &["broadcast"],
        ..CASES[2]
    };
    let [scatter, gather, _, gossip, exchange] = CASES;
    let cases = [scatter, gather, broadcast, gossip, exchange];
    for (at, (case, how)) in cases.iter().zip(ends).enumerate() {
        let place = Place::with(case, LONG, LINK);
        end(cut_at_three_fifths(&place, &[]), how);
        let json = ["--format", "json"];
        // The same command continues the job, as `resume` does.
        let again = match at % 2 {
            0 => place.start("out", &json).finish(),
            _ => {
                let record = place.record();
                let record = record.to_str().expect("it is UTF-8");
                run([&["resume", record], &json[..]].concat())
            }
        };
        assert_continued(&again.ok(), case);
        place.assert_complete();
    }
}

/// A PE dies that has nothing to do with the long message.
#[test]
fn a_retry_goes_on_with_what_has_arrived() {
    let case = Case {
        words: &["scatter"],
        entries: &["p1", "p2", "p3"],
        long: "p1",
    };
    let place = Place::with(&case, LONG, LINK);
    let running = cut_at_three_fifths(&place, &["--retry", "1", "--format", "json"]);
    running.pe(3).signal(Signal::KILL);
    assert_continued(&running.finish().ok(), &case);
    place.assert_complete();
}

/// The digest of what is there is compared with the source's.
#[test]
fn what_was_damaged_meanwhile_is_sent_again() {
    let place = Place::with(&CASES[0], LONG, LINK);
    end(cut_at_three_fifths(&place, &[]), End::AllKilled);
    for (path, _) in partial(&place) {
        let file = path.join("some");
        let mut content = fs::read(&file).expect("it is there");
        content[1000] ^= 1;
        fs::write(&file, content).expect("it can be written");
    }
    let again = place.start("out", &["--format", "json"]).finish().ok();
    let result: serde_json::Value = serde_json::from_str(&again.stdout).expect("it is JSON");
    assert_eq!(result["continued"], serde_json::json!([]));
    place.assert_complete();
}

/// A prefix of another version of a message is not a part of the new version.
#[test]
fn a_source_that_changed_is_refused_or_sent_as_a_whole() {
    let place = Place::with(&CASES[0], LONG, LINK);
    end(cut_at_three_fifths(&place, &[]), End::AllKilled);
    fill(&place.path("in").join("p1/some"), LONG + 7);
    let record = place.record();
    let record = record.to_str().expect("it is UTF-8");
    let refused = run(["resume", record]);
    assert_ne!(refused.code, Some(0), "{}", refused.stdout);
    refused.says(&["p1", "--force"]);
    let forced = run(["resume", record, "--force", "--format", "json"]).ok();
    let result: serde_json::Value = serde_json::from_str(&forced.stdout).expect("it is JSON");
    assert_eq!(result["continued"], serde_json::json!([]));
    place.assert_complete();
}

/// When nothing can go on with it any more, what has arrived goes.
#[test]
fn without_a_record_nothing_is_kept() {
    let place = Place::with(&CASES[0], LONG, LINK);
    end(cut_at_three_fifths(&place, &[]), End::AllKilled);
    assert!(!partial(&place).is_empty());
    fs::remove_file(place.record()).expect("it is there");
    place.start("out", &["--force"]).finish().ok();
    place.assert_complete();
}
