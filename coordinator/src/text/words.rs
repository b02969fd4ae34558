//! Words in messages and results: numbers with nouns, lists of names, quoting for shells.

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

/// Quotes a word for a shell, if necessary.
pub fn shell_word(word: String) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_.,:/=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
