//! Tables of cases as text: a case in each line, with `|` between its columns. Empty lines, and lines
//! that start with `#`, are skipped.

use crate::refused;

/// Returns the columns of each case.
#[track_caller]
pub fn rows<const COLUMNS: usize>(table: &str) -> Vec<[&str; COLUMNS]> {
    let of_case = |line| {
        let columns: Vec<&str> = columns(line).collect();
        let count = columns.len();
        let columns = columns.try_into().ok();
        columns.unwrap_or_else(|| panic!("{count} columns and not {COLUMNS}: {line}"))
    };
    lines(table).map(of_case).collect()
}

/// Returns the commands of a table, with the causes for which each is rejected. A case is the rest of a
/// command that starts with `command`, and its causes.
#[track_caller]
pub fn refusals<'a>(command: &str, table: &'a str) -> Vec<(String, Vec<&'a str>)> {
    let of_case = |line| {
        let mut columns = columns(line);
        let rest = columns.next().unwrap_or_default();
        let causes: Vec<&str> = columns.collect();
        assert!(!causes.is_empty(), "no cause: {line}");
        (format!("{command} {rest}"), causes)
    };
    lines(table).map(of_case).collect()
}

/// Checks with [`refused`] that each command of a table is rejected for its causes.
#[track_caller]
pub fn refused_each(command: &str, table: &str) {
    for (line, causes) in refusals(command, table) {
        refused(&line, &causes);
    }
}

/// Reads the numbers of a column.
#[track_caller]
pub fn numbers(column: &str) -> Vec<u64> {
    let numbers: Result<_, _> = column.split_whitespace().map(str::parse).collect();
    numbers.unwrap_or_else(|_| panic!("no number: {column}"))
}

/// Returns the two parts of each word of a column, such as `from=to`.
#[track_caller]
pub fn from_to(column: &str) -> Vec<(&str, &str)> {
    let words = column.split_whitespace();
    words
        .map(|word| word.split_once('=').expect(word))
        .collect()
}

fn lines(table: &str) -> impl Iterator<Item = &str> {
    let lines = table.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn columns(line: &str) -> impl Iterator<Item = &str> {
    line.split('|').map(str::trim)
}
