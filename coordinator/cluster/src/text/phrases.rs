//! Words in messages and results: numbers with nouns, lists of names, quoting for shells.

use std::ffi::OsStr;
use std::fmt::Display;
use std::path::Path;

/// Returns a function that puts a path before an error.
pub fn at<E: Display>(path: &Path) -> impl Fn(E) -> anyhow::Error {
    move |error| anyhow::anyhow!("{}: {error}", path.display())
}

/// Keeps a line as one of the last three of a process.
pub fn keep_last(lines: &mut Vec<String>, line: String) {
    const KEPT: usize = 3;
    lines.push(line);
    if lines.len() > KEPT {
        lines.remove(0);
    }
}

/// Formats the last lines of a process behind `before`; empty if there are none.
pub fn last_words<'a>(before: &str, lines: impl IntoIterator<Item = &'a String>) -> String {
    let lines: Vec<&str> = lines.into_iter().map(String::as_str).collect();
    match lines.is_empty() {
        true => String::new(),
        false => format!("{before}{}", lines.join(" / ")),
    }
}

/// Formats a number with its noun: `1 flit`, `2 flits`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// Joins names: "P1, P2, P5".
pub fn names(all: &[impl ToString]) -> String {
    all.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Formats a signal as its number, with the meaning of the common ones.
pub fn signal_named(signal: i32) -> String {
    match signal {
        9 => "signal 9 (SIGKILL)".to_owned(),
        25 => "signal 25 (SIGXFSZ): a file was to be longer than `ulimit -f` allows".to_owned(),
        _ => format!("signal {signal}"),
    }
}

/// Returns a command line, quoted so that it can be typed again.
pub fn command_line(words: impl IntoIterator<Item: AsRef<OsStr>>) -> String {
    let quoted = |word: &OsStr| shell_word(word.to_string_lossy().into_owned());
    let words = words.into_iter().map(|word| quoted(word.as_ref()));
    words.collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell, if necessary.
pub fn shell_word(word: String) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_.,:/=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::command_line;

    #[test]
    fn a_command_line_can_be_typed_again() {
        let typed = [
            ("flitcast", "flitcast"),
            ("uniform:0..1MiB:7", "uniform:0..1MiB:7"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
            ("two words", "'two words'"),
            ("$HOME;*", "'$HOME;*'"),
        ];
        let line = command_line(typed.map(|(word, _)| word));
        assert_eq!(line, typed.map(|(_, quoted)| quoted).join(" "));
        assert_eq!(command_line([OsStr::from_bytes(b"a\xff")]), "'a\u{fffd}'");
    }
}
