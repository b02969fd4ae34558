//! What may go to a terminal.

use std::fmt::Display;

/// The text with its control characters escaped, all but the ends of lines: what people
/// and files say is repeated in messages, and could be made to say more to a terminal.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_told_nothing_but_text() {
        let said = "no `\x1b[2J\u{9b}31m\x07é\t`\nin two lines";
        let shown = "no `\\u{1b}[2J\\u{9b}31m\\u{7}é\\t`\nin two lines";
        assert_eq!(printable(said), shown);
    }
}
