//! The text of a TOML file while it is written, with comments for the users who read it.

use std::fmt::Display;

/// Quotes a text as a TOML basic string, which is JSON's form except for one character.
pub fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.replace('\u{7f}', "\\u007f")
}

/// Returns the line of a key, with a comment unless it is empty.
pub fn line(key: &str, value: impl Display, note: &str) -> String {
    let hash = if note.is_empty() { "" } else { " # " };
    format!("{key} = {value}{hash}{note}\n")
}

/// Returns the line of a key, or nothing if there is no value.
pub fn optional_line(key: &str, value: Option<impl Display>, note: &str) -> String {
    value.map_or(String::new(), |value| line(key, value, note))
}

/// Returns the lines of a list with a line for each value.
pub fn list<T: Display>(key: &str, values: impl IntoIterator<Item = T>, note: &str) -> String {
    let values = values.into_iter().map(|value| format!("  {value},\n"));
    let hash = if note.is_empty() { "" } else { " # " };
    format!("{key} = [{hash}{note}\n{}]\n", values.collect::<String>())
}
