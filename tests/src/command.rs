//! Commands that work something out and print it, written as a user types them.

use serde_json::Value;

use crate::run;

/// What a command prints that has to succeed.
#[track_caller]
pub fn printed(line: &str) -> String {
    run(line.split_whitespace()).ok().stdout
}

/// The same, as JSON.
#[track_caller]
pub fn parsed(line: &str) -> Value {
    let text = printed(line);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// That a command is refused with exit status 2, each of `causes` in stderr, and
/// prints nothing.
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
