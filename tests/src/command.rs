//! Commands that compute and print, written as a user types them.

use std::path::Path;

use serde_json::Value;

use crate::{Finished, Report, run};

/// Returns the output of a command that must succeed.
#[track_caller]
pub fn printed(line: &str) -> String {
    run(line.split_whitespace()).ok().stdout
}

/// Returns the report of a command that must succeed; its line lacks `--format json`.
#[track_caller]
pub fn reported(line: &str) -> Report {
    let words = line.split_whitespace().chain(["--format", "json"]);
    run(words).ok().report()
}

/// Returns the JSON output of a command that must succeed.
#[track_caller]
pub fn parsed(line: &str) -> Value {
    let text = printed(line);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Continues from a record, with these further options.
#[track_caller]
pub fn resume(record: &Path, more: &str) -> Finished {
    let record = record.to_str().expect("its path is UTF-8");
    let words = ["resume", record].into_iter();
    run(words.chain(more.split_whitespace()))
}

/// Checks that a command is rejected with exit status 2, with each of `causes` in stderr and
/// nothing on stdout.
#[track_caller]
pub fn refused(line: &str, causes: &[&str]) {
    let run = run(line.split_whitespace());
    run.fails(2, causes);
    assert_eq!(run.stdout, "", "{line}");
}
