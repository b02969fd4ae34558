//! Words as messages and results need them: how many of what, who, and what a shell takes for
//! one.

/// `1 flit`, `2 flits`.
pub fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

/// "P1, P2, P5".
pub fn names(all: &[impl ToString]) -> String {
    all.iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// A word as a shell takes it for one.
pub fn shell_word(word: String) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_.,:/=+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word,
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
