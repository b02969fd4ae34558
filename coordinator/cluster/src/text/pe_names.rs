//! Names of PEs in messages and log lines: `P2 was killed` becomes `P2 gamma was killed` where P2 is called
//! `gamma`.

use std::sync::{Mutex, PoisonError};

use flitcast_proto::PeId;

static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Sets the names of the PEs, by their numbers, for all later messages of this process; none if it is
/// empty.
pub fn set(names: Vec<String>) {
    *NAMES.lock().unwrap_or_else(PoisonError::into_inner) = names;
}

/// Returns the names of the PEs, by their numbers; empty if they have none.
pub fn all() -> Vec<String> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Returns a PE's number with its name, if it has one: `P1 beta`.
pub fn called(pe: PeId) -> String {
    with_names(&pe.to_string())
}

/// Returns a message with the name of each PE behind its number.
pub fn with_names(text: &str) -> String {
    insert(text, of_message)
}

/// Returns a log line with the name of each PE behind the field `pe`.
pub fn in_log_line(line: &str) -> String {
    insert(line, of_field)
}

fn insert(text: &str, name: Insertion) -> String {
    insert_names(
        text,
        &NAMES.lock().unwrap_or_else(PoisonError::into_inner),
        name,
    )
}

/// The text with a name that is put behind a number, if any, between what comes before and behind it.
type Insertion = fn(before: &str, behind: &str, name: &str) -> Option<String>;

/// Puts names behind numbers. A name that is the number is left out.
fn insert_names(text: &str, names: &[String], insertion: Insertion) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('P') {
        let (before, token) = rest.split_at(at);
        out.push_str(before);
        let digits = token[1..].bytes().take_while(u8::is_ascii_digit).count();
        let (token, behind) = token.split_at(1 + digits);
        let name = token[1..].parse().ok().and_then(|pe: usize| names.get(pe));
        let name = name.filter(|name| !name.eq_ignore_ascii_case(token));
        let inserted = name.and_then(|name| insertion(&out, behind, name));
        out.push_str(token);
        out.push_str(&inserted.unwrap_or_default());
        rest = behind;
    }
    out + rest
}

/// Returns the name behind a number that is a word, and not in a path or quotes, unless it is there already.
fn of_message(before: &str, behind: &str, name: &str) -> Option<String> {
    let last = before.chars().next_back();
    let is_begin = last.is_none_or(|last| last.is_whitespace() || "(,;:".contains(last));
    (is_begin && is_word_end(behind) && !is_there(behind, name)).then(|| format!(" {name}"))
}

fn is_there(behind: &str, name: &str) -> bool {
    let next = behind.strip_prefix(' ');
    let behind = next.and_then(|next| next.strip_prefix(name));
    behind.is_some_and(|behind| !behind.starts_with(char::is_alphanumeric))
}

/// Returns the name behind a value of the field `pe`: `pe=P2 gamma`; in JSON in a further field,
/// `"pe":"P2","pe_name":"gamma"`.
fn of_field(before: &str, behind: &str, name: &str) -> Option<String> {
    // The second is that of a terminal with colours.
    if before.ends_with("pe=") || before.ends_with("pe\x1b[0m\x1b[2m=\x1b[0m") {
        return (!is_there(behind, name)).then(|| format!(" {name}"));
    }
    let is_json = before.ends_with(r#""pe":""#) && behind.starts_with('"');
    let name = is_json.then(|| serde_json::Value::from(name).to_string())?;
    Some(format!(r#"","pe_name":{}"#, &name[..name.len() - 1]))
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
            assert_eq!(insert_names(text, &names, of_message), expected);
        }
        for same in [
            "P1..P2",
            "/data/P1/x",
            "`P1`",
            "XP1 P3 P P12 P-1 P1x",
            "--from=P1",
        ] {
            assert_eq!(insert_names(same, &names, of_message), same);
        }
        let short = ["root", "w"].map(str::to_owned);
        let killed = insert_names("P1 was killed", &short, of_message);
        assert_eq!(killed, "P1 w was killed");
        let message = "P1 is gone";
        assert_eq!(insert_names(message, &[], of_message), message);
        let numbers = ["p0", "p1"].map(str::to_owned);
        assert_eq!(insert_names(message, &numbers, of_message), message);
    }

    #[test]
    fn names_stand_behind_the_fields_of_log_lines() {
        let names = ["root", "a \"b\""].map(str::to_owned);
        let colored = "pe\x1b[0m\x1b[2m=\x1b[0mP0";
        let json = r#"{"span":{"pe":"P1","name":"pe"},"a":"P0"}"#;
        for (line, before, behind) in [
            ("joined pe=P1 address=::1", "P1", "P1 a \"b\""),
            ("pe{pe=P0}: assigned to P1", "P0", "P0 root"),
            (colored, "P0", "P0 root"),
            (json, r#""P1""#, r#""P1","pe_name":"a \"b\"""#),
        ] {
            let expected = line.replacen(before, behind, 1);
            assert_eq!(insert_names(line, &names, of_field), expected);
        }
    }
}
