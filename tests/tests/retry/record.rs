//! Options that a record keeps. Invalid records and command lines: all faults are reported at once, and
//! nothing is started or written.

use std::fs;

use flitcast_tests::files::{assert_same_below, fill, record, wait_for_partial};
use flitcast_tests::{resume, scratch};

use super::{Files, edit};

#[test]
fn a_resumed_round_is_limited_compresses_and_syncs_as_the_failed_one() {
    let dir = scratch();
    fill(&dir.join("in/p1"), 2 << 20);
    let options = "--bwlimit 8mbit --compress --sync none --timeouts heartbeat=500ms,silence=5s";
    let running = dir.start(&format!(
        "scatter --tree path:2 {options} --input @/in --output @/out"
    ));
    wait_for_partial(&dir.join("out"));
    running.interrupt();
    let record = record(&dir.join("out"));
    let text = fs::read_to_string(&record).expect("it is there");
    for line in [
        "bwlimit = \"8mbit\"",
        "compress = \"zstd\"",
        "durable = \"none\"",
    ] {
        assert!(text.contains(&format!("\n{line}\n")), "{line}: {text}");
    }
    // Time limits that are not given are those of the record.
    let impatient = resume(&record, "--timeouts silence=600ms");
    impatient.fails(2, &["heartbeats of 500ms"]);
    let resumed = resume(&record, "").ok();
    resumed.prints(&["at most 8mbit from each PE", "--sync none"]);
    assert_same_below(&dir.join("in"), &dir.join("out"));
}

/// Returns the files of a scatter that failed, and left a record.
fn failed() -> Files {
    let files = Files::new(2);
    let (finished, _) = files.killing("scatter --flit-size 64KiB", "p3", 4);
    finished.with_code(1);
    files
}

#[test]
fn a_damaged_record_is_refused_line_by_line() {
    let files = failed();
    let record = files.record();
    let whole = fs::read_to_string(&record).expect("it is there");
    edit(&record, |text| {
        text.replace("flit_bytes = ", "flit_bytes = 9999")
            .replace("delivered = [", "delivered = [7, ")
            .replace("pe = 4", "pe = 0")
    });
    let before = fs::read(&record).expect("it is there");
    let refused = files.resume("--revive").with_code(2);
    let shown = record.display();
    for (key, why) in [
        ("flit_bytes", " is not from "),
        ("delivered", "there is no P7 with a message"),
        ("pe = 4", "there is no P0 with a message"),
    ] {
        let line = whole.lines().position(|line| line.contains(key));
        let line = line.expect("it is there") + 1;
        let errors = refused.stderr.lines();
        let start = format!("{shown}:{line}:");
        let mut errors = errors.filter(|error| error.contains(&start) && error.contains(why));
        assert!(errors.next().is_some(), "{key}: {}", refused.stderr);
    }
    assert_eq!(fs::read(&record).expect("it is there"), before);
    assert_eq!(files.there().len(), 1);

    fs::write(&record, &whole[..whole.len() / 2]).expect("it can be written");
    files.resume("").with_code(2);
}

#[test]
fn all_differences_from_the_record_are_reported_at_once() {
    let files = failed();
    fs::create_dir(files.output().join("p1")).expect("it is not there");
    fs::remove_dir_all(files.input().join("p2")).expect("it is there");
    let refused = files.resume("--revive");
    refused.with_code(2).stderr_has(&[
        "output/p1 is there, and by the record P1's message is missing",
        "P2's message, of ",
        " bytes by the record, is not in ",
    ]);
    let refused = files.resume("--retry x --timeouts y=1s");
    refused.fails(2, &["--retry: `x` is no", "--timeouts: `y=1s`"]);
}
