//! Outputs that contain messages of the run: equal ones are skipped, and different ones are in the
//! way.

use std::fs;
use std::path::{Path, PathBuf};

use flitcast_tests::Finished;
use flitcast_tests::files::{fill, identity, set_mode};

use super::interrupted::{CASES, Case, Place, identities};

const SMALL: usize = 5_000;

fn complete(case: &Case) -> (Place<'_>, Vec<PathBuf>) {
    let place = Place::with(case, SMALL, "rate=8mbit");
    place.run("out", "").ok();
    let (there, _) = place.arrived();
    (place, there)
}

/// Returns a file of an entry that has arrived.
fn file_in(case: &Case, entry: &Path) -> PathBuf {
    match case.operation() {
        "broadcast" => entry.join("model/some"),
        _ => entry.join("some"),
    }
}

fn skipped(finished: &Finished) -> usize {
    finished.report().list("/skipped").len()
}

#[test]
fn the_same_command_again_sends_nothing() {
    for case in &CASES {
        let (place, there) = complete(case);
        let before = identities(&there);
        let again = place.run("out", "").ok();
        let expected = format!(
            "skipped      {} messages in the output already: ",
            there.len()
        );
        again.prints(&[&expected]);
        assert_eq!(identities(&there), before, "one was written again");
        let again = place.run("out", "--format json").ok();
        assert_eq!(skipped(&again), there.len());
        place.assert_complete();
    }
}

#[test]
fn only_missing_messages_are_sent() {
    for case in &CASES {
        let (place, mut there) = complete(case);
        let removed = there.remove(0);
        fs::remove_dir_all(&removed).expect("it is there");
        let before = identities(&there);
        let again = place.run("out", "--format json").ok();
        assert_eq!(skipped(&again), there.len(), "{}", again.stdout);
        assert_eq!(identities(&there), before, "one was written again");
        place.assert_complete();
    }
}

/// If a byte, the length or the mode differs, nothing is sent, and the error names the entry.
#[test]
fn different_output_needs_force() {
    let changes: [fn(&PathBuf); 3] = [
        |file| {
            let mut bytes = fs::read(file).expect("it is there");
            bytes[7] ^= 1;
            let time = fs::metadata(file).and_then(|found| found.modified());
            fs::write(file, bytes).expect("it can be written");
            let file = fs::File::options().write(true).open(file);
            let set = file.and_then(|file| file.set_modified(time?));
            set.expect("it is ours");
        },
        |file| fill(file, SMALL - 1),
        |file| set_mode(file, 0o600),
    ];
    for (at, case) in CASES.iter().enumerate() {
        let (place, there) = complete(case);
        changes[at % 3](&file_in(case, &there[0]));
        let before = identities(&there);
        let refused = place.run("out", "");
        let entry = format!("\n    {}", there[0].display());
        refused.fails(2, &["differ from what is sent", "--force", &entry]);
        assert_eq!(identities(&there), before, "nothing was replaced");
        place.run("out", "--force").ok();
        place.assert_complete();
    }
}

/// One copy of a broadcast message is older than the others.
#[test]
fn a_copy_that_differs_from_the_others_needs_force() {
    let (place, there) = complete(&CASES[2]);
    fill(&file_in(&CASES[2], &there[1]), SMALL);
    let refused = place.run("out", "");
    let entry = there[1].display().to_string();
    refused.fails(2, &["differ from what is sent", &entry]);
    place.run("out", "--force").ok();
    place.assert_complete();
}

/// Distributed files arrive in a folder that has its own modification time.
#[test]
fn distributed_files_are_skipped_too() {
    let (place, _) = complete(&CASES[0]);
    place.run("dealt", "--spread").ok();
    let again = place.run("dealt", "--spread --format json").ok();
    assert_eq!(skipped(&again), 3, "{}", again.stdout);
}

/// A map creates its results again.
#[test]
fn the_results_of_a_map_are_not_skipped() {
    let case = Case {
        line: "map",
        ..CASES[0]
    };
    let place = Place::with(&case, SMALL, "rate=8mbit");
    place.run("out", "-- cat").ok();
    let (there, _) = place.arrived();
    let before = identity(&there[0]);
    let refused = place.run("out", "-- cat");
    refused.fails(2, &["holds files already"]);
    assert_eq!(identity(&there[0]), before);
}
