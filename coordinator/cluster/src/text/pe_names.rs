//! Names of PEs in messages: `P2 was killed` becomes `P2 gamma was killed` where P2 is called `gamma`.

use std::sync::{Mutex, PoisonError};

static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Sets the names of the PEs, by their numbers, for all later messages of this process; none if it is
/// empty.
pub fn set(names: Vec<String>) {
    *NAMES.lock().unwrap_or_else(PoisonError::into_inner) = names;
}

/// Returns a message with the name of each PE behind its number.
pub fn with_names(text: &str) -> String {
    insert(text, &NAMES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Puts names behind the numbers that stand as words of their own, and not in paths or quotes. A name that
/// is there already is not repeated.
fn insert(text: &str, names: &[String]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('P') {
        let (before, token) = rest.split_at(at);
        out.push_str(before);
        let digits = token[1..].bytes().take_while(u8::is_ascii_digit).count();
        let (token, behind) = token.split_at(1 + digits);
        out.push_str(token);
        rest = behind;
        let is_begin = before
            .chars()
            .next_back()
            .map_or(out.len() == token.len(), |last| {
                last.is_whitespace() || "(,;:".contains(last)
            });
        let name = token[1..].parse().ok().and_then(|pe: usize| names.get(pe));
        // A name that only repeats the number says nothing.
        let says_more = |name: &&String| !name.eq_ignore_ascii_case(token);
        let name = name.filter(says_more);
        if let Some(name) = name.filter(|_| is_begin && is_word_end(behind))
            && behind
                .strip_prefix(' ')
                .is_none_or(|next| !next.starts_with(&**name))
        {
            out.push(' ');
            out.push_str(name);
        }
    }
    out + rest
}

fn is_word_end(behind: &str) -> bool {
    let mut chars = behind.chars();
    match (chars.next(), chars.next()) {
        (None, _) => true,
        (Some('.'), next) => next.is_none_or(char::is_whitespace),
        (Some(first), _) => first.is_whitespace() || ",;:)'".contains(first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_behind_numbers_that_are_words() {
        let names = ["root", "beta", "gamma ray"].map(str::to_owned);
        for (text, expected) in [
            ("P1 was killed", "P1 beta was killed"),
            ("error: P0, P2: gone", "error: P0 root, P2 gamma ray: gone"),
            ("P2's message (P1).", "P2 gamma ray's message (P1 beta)."),
            ("where: P1 beta, process 7", "where: P1 beta, process 7"),
            ("one\nP1", "one\nP1 beta"),
        ] {
            assert_eq!(insert(text, &names), expected);
        }
        for same in [
            "P1..P2",
            "/data/P1/x",
            "`P1`",
            "XP1 P3 P P12 P-1 P1x",
            "--from=P1",
        ] {
            assert_eq!(insert(same, &names), same);
        }
        assert_eq!(insert("P1 is gone", &[]), "P1 is gone");
        let numbers = ["p0", "p1"].map(str::to_owned);
        assert_eq!(insert("P1 is gone", &numbers), "P1 is gone");
    }
}
