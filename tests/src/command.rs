//! Commands that compute and print, written as a user types them.

use serde_json::Value;

use crate::run;

/// Returns the output of a command that must succeed.
#[track_caller]
pub fn printed(line: &str) -> String {
    run(line.split_whitespace()).ok().stdout
}

/// Returns the JSON output of a command that must succeed.
#[track_caller]
pub fn parsed(line: &str) -> Value {
    let text = printed(line);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Checks that a command is rejected with exit status 2, with each of `causes` in stderr and
/// nothing on stdout.
#[track_caller]
pub fn refused(line: &str, causes: &[&str]) {
    let run = run(line.split_whitespace());
    assert_eq!(run.code, Some(2), "{line}\n{}", run.stderr);
    assert_eq!(run.stdout, "", "{line}");
    for cause in causes {
        let stderr = &run.stderr;
        assert!(stderr.contains(cause), "{line}: no `{cause}` in\n{stderr}");
    }
}
