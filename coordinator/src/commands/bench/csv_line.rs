//! A line of CSV, and times in it.

/// Returns a line of CSV; a value with a comma, a quote or a line break is quoted (RFC 4180).
pub fn line<'a>(values: impl IntoIterator<Item = &'a str>) -> String {
    let quoted = |value: &'a str| match value.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", value.replace('"', "\"\"")),
        false => value.to_owned(),
    };
    let values: Vec<String> = values.into_iter().map(quoted).collect();
    values.join(",") + "\n"
}

/// Formats nanoseconds as microseconds, with all digits.
pub fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
