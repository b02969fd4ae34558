//! `{}` in the command of a map, and `--halt WHEN`: the failures after which no further command begins.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// The word in a command that is replaced by the name of the shard.
const BRACES: &[u8] = b"{}";

/// Returns whether a word has a place for the name of a shard.
pub fn has_braces(word: &OsString) -> bool {
    find(word.as_bytes()).is_some()
}

fn find(text: &[u8]) -> Option<usize> {
    text.windows(BRACES.len()).position(|part| part == BRACES)
}

/// Replaces `{}` in a word by the name of a shard.
pub fn with_name(word: &OsStr, name: &OsStr) -> OsString {
    let (mut rest, mut out) = (word.as_bytes(), Vec::new());
    while let Some(at) = find(rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(name.as_bytes());
        rest = &rest[at + BRACES.len()..];
    }
    out.extend_from_slice(rest);
    OsString::from_vec(out)
}

/// When a map stops to run commands because commands have failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// Never: all others are run.
    Never,
    /// After this number of failures; the running commands end by themselves.
    Soon(u32),
    /// After this number of failures; the running commands are killed.
    Now(u32),
}

/// Parses the value of `--halt`.
///
/// # Errors
///
/// Returns an error if the text has none of the forms.
pub fn parse_halt(text: &str) -> Result<Halt, String> {
    let wrong = || format!("`{text}` is not never, soon,fail=N or now,fail=N");
    if text == "never" {
        return Ok(Halt::Never);
    }
    let (when, failures) = text.split_once(",fail=").ok_or_else(wrong)?;
    let digits = failures.bytes().all(|byte| byte.is_ascii_digit());
    let failures = failures.parse().ok().filter(|&n| digits && n > 0);
    match (when, failures) {
        ("soon", Some(failures)) => Ok(Halt::Soon(failures)),
        ("now", Some(failures)) => Ok(Halt::Now(failures)),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_replaced_wherever_they_are() {
        let with = |word: &str| with_name(OsStr::new(word), OsStr::new("a b"));
        for (word, expected) in [
            ("{}", "a b"),
            ("x{}y{}", "xa bya b"),
            ("{{}}", "{a b}"),
            ("{ } {", "{ } {"),
            ("", ""),
        ] {
            assert_eq!(with(word), expected);
        }
    }
}
