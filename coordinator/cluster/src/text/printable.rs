//! Escaping of text for terminals.

use std::fmt::Display;

/// Escapes all control characters except newlines. Messages repeat text from users and files, which
/// could otherwise control the terminal.
pub fn printable(text: impl Display) -> String {
    let mut shown = String::new();
    for c in text.to_string().chars() {
        match c.is_control() && c != '\n' {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

/// Escapes all control characters, including newlines, so that text from a peer cannot begin a
/// line.
pub fn in_one_line(text: impl Display) -> String {
    printable(text).replace('\n', "\\n")
}

/// Escapes as [`printable`] does, and indents all lines but the first, so that text from a peer
/// cannot begin a line.
pub fn indented(text: impl Display) -> String {
    printable(text).replace('\n', "\n    ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        let text = "no `\x1b[2J\u{9b}31m\x07é\t`\nin two lines";
        let shown = "no `\\u{1b}[2J\\u{9b}31m\\u{7}é\\t`\nin two lines";
        assert_eq!(printable(text), shown);
        assert_eq!(in_one_line(text), shown.replace('\n', "\\n"));
        assert_eq!(indented(text), shown.replace('\n', "\n    "));
    }
}
