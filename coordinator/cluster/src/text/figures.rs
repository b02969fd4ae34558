//! Figures in results: in a human-readable table or in JSON.

use flitcast_plan::fraction::Fraction;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

const GAP: usize = 2;

/// A table without lines between its cells.
pub struct Table {
    /// The cells of each row; the header is the first row.
    rows: Vec<Vec<String>>,
}

/// Creates a table with its header and no rows yet.
pub fn table<C: ToString>(header: impl IntoIterator<Item = C>) -> Table {
    let mut table = Table { rows: Vec::new() };
    table.add_row(header);
    table
}

impl Table {
    pub fn add_row<C: ToString>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells = cells.into_iter().map(|cell| cell.to_string());
        self.rows.push(cells.collect());
    }

    /// Shortens the names in the first column so that rows fit into `width` characters, but not below
    /// `least` characters.
    pub fn shorten_names(&mut self, least: usize, width: Option<usize>) {
        let Some(width) = width else {
            return;
        };
        let longest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let lengths = cells.map(|cell| cell.chars().count());
            lengths.max().unwrap_or(0)
        };
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let others = (1..columns).map(|column| GAP + longest(column));
        let others: usize = others.sum();
        let room = width.saturating_sub(GAP + others).max(least);
        for name in self.rows.iter_mut().filter_map(|row| row.first_mut()) {
            *name = shortened(name, room);
        }
    }
}

/// Returns the first of these names, long ones without their middle, and the number of the others.
pub fn first_names(names: impl ExactSizeIterator<Item: AsRef<str>>) -> String {
    const SHOWN: usize = 3;
    const CHARS: usize = 24;
    let others = names.len().saturating_sub(SHOWN);
    let shown = names.take(SHOWN);
    let shown: Vec<String> = shown.map(|name| shortened(name.as_ref(), CHARS)).collect();
    match others {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Shortens a name that has more than `room` characters: an ellipsis takes the place of its middle.
pub fn shortened(name: &str, room: usize) -> String {
    let count = name.chars().count();
    if count <= room {
        return name.to_owned();
    }
    let kept = room.saturating_sub(1);
    let (begin, end) = (kept.div_ceil(2), kept / 2);
    let begin = name.chars().take(begin);
    let end = name.chars().skip(count - end);
    begin.chain(['…']).chain(end).collect()
}

/// Formats a table as text: its first `names` columns are aligned left, the others, which are
/// figures, right.
pub fn lines(table: Table, names: usize) -> String {
    fitted(table, names, &[], None)
}

fn formatted(table: &Table, names: usize) -> String {
    let mut widths: Vec<usize> = Vec::new();
    for row in &table.rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.chars().count().max(*width);
        }
    }
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match column < names {
            true => format!("{cell:width$}{:GAP$}", ""),
            false => format!("{cell:>width$}{:GAP$}", ""),
        });
        format!("  {}\n", cells.collect::<String>().trim_end())
    };
    table.rows.iter().map(line).collect()
}

/// Formats a table like [`lines`], without the columns of the first headings in `least`, as few of them
/// as let the rows fit into `width` characters. No cell is cut.
pub fn fitted(mut table: Table, mut names: usize, least: &[&str], width: Option<usize>) -> String {
    let mut text = formatted(&table, names);
    for heading in least {
        let longest = text.lines().map(|line| line.chars().count()).max();
        if longest.unwrap_or(0) <= width.unwrap_or(usize::MAX) {
            break;
        }
        let header = table.rows.first().into_iter().flatten();
        let Some(column) = header.clone().position(|cell| cell == heading) else {
            continue;
        };
        for row in table.rows.iter_mut().filter(|row| row.len() > column) {
            row.remove(column);
        }
        names -= usize::from(column < names);
        text = formatted(&table, names);
    }
    text
}

/// Formats explained words, each with its text beside it, in lines of at most `width` characters.
pub fn explained(words: &[(&str, String)], width: Option<usize>) -> String {
    let longest = words.iter().map(|(word, _)| word.chars().count());
    let indent = longest.max().unwrap_or(0) + GAP;
    let words = words.iter();
    words
        .map(|(word, text)| beside(word, indent, text, width))
        .collect()
}

/// Formats a text beside its label, which takes `indent` characters, in lines of at most `width`
/// characters.
pub fn beside(label: &str, indent: usize, text: &str, width: Option<usize>) -> String {
    let room = width.map_or(usize::MAX, |width| {
        width.saturating_sub(indent + GAP).max(1)
    });
    let mut label = label;
    let mut out = String::new();
    for line in wrapped(text, room) {
        out.push_str(&format!("  {label:indent$}{line}\n"));
        label = "";
    }
    out
}

/// Formats a heading in lines of at most `width` characters.
pub fn heading(text: &str, width: Option<usize>) -> String {
    wrapped(text, width.unwrap_or(usize::MAX)).join("\n")
}

/// Divides a text between words, but not between a number and its unit, into lines of at most `room`
/// characters, except for longer words.
pub fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut rest = text;
    loop {
        let ends = rest.match_indices(' ').map(|(at, _)| at);
        let is_number = |at: &usize| rest[..*at].ends_with(|char: char| char.is_ascii_digit());
        let end = ends
            .into_iter()
            .find(|at| !is_number(at))
            .unwrap_or(rest.len());
        let word = &rest[..end];
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
        match rest.get(end + 1..) {
            Some(behind) => rest = behind,
            None => return lines,
        }
    }
}

/// Serializes nanoseconds as microseconds, like [`micros`].
pub fn as_micros<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    micros(*ns).serialize(serializer)
}

/// Serializes a time that may be a fraction: as an integer, or as a string like `27/2`.
pub fn as_exact<S: Serializer>(time: &Fraction, serializer: S) -> Result<S::Ok, S::Error> {
    exact(*time).serialize(serializer)
}

/// Returns a time that may be a fraction as an integer, or as a string like `27/2`.
pub fn exact(time: Fraction) -> Value {
    match time.whole().map(u64::try_from) {
        Some(Ok(number)) => json!(number),
        Some(Err(_)) | None => json!(time.to_string()),
    }
}

/// Formats a time that may be a fraction, with at most three decimals.
pub fn decimal(time: Fraction) -> String {
    match time.whole() {
        Some(number) => number.to_string(),
        None => {
            let digits = format!("{:.3}", time.to_f64());
            digits
                .trim_end_matches('0')
                .trim_end_matches('.')
                .to_owned()
        }
    }
}

/// Converts nanoseconds to microseconds, the unit of all times in JSON.
pub fn micros(ns: u64) -> Value {
    json!(ns as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_aligned_left_and_figures_right() {
        let mut rows = table(["PE", "host", "bytes"]);
        rows.add_row(["P1", "é", "12345678"]);
        rows.add_row(["P10", "", "9"]);
        assert_eq!(
            lines(rows, 2),
            "  PE   host     bytes\n  P1   é     12345678\n  P10               9\n"
        );
    }

    #[test]
    fn columns_are_left_out_until_a_table_fits() {
        let rows = || {
            let mut rows = table(["PE", "host", "depth", "bytes"]);
            rows.add_row(["P1", "beta", "3"]);
            rows.add_row(["P2", "gamma", "3", "12345678"]);
            rows
        };
        let least = ["depth", "none", "host", "bytes"];
        let fit = |width| fitted(rows(), 2, &least, width);
        assert_eq!(fit(None), lines(rows(), 2));
        let widest = lines(rows(), 2).lines().map(str::len).max();
        assert_eq!(fit(widest), lines(rows(), 2));
        let without_depth = "  PE  host      bytes\n  P1  beta\n  P2  gamma  12345678\n";
        assert_eq!(fit(Some(24)), without_depth);
        assert_eq!(fit(Some(14)), "  PE     bytes\n  P1\n  P2  12345678\n");
        assert_eq!(fit(Some(1)), "  PE\n  P1\n  P2\n");
    }

    #[test]
    fn long_names_are_shortened_in_the_middle() {
        for (room, expected) in [(7, "abcdefg"), (6, "abc…fg"), (5, "ab…fg"), (1, "…")] {
            assert_eq!(shortened("abcdefg", room), expected);
        }
        assert_eq!(shortened("éééé", 3), "é…é");
        let fit = |least, width| {
            let mut rows = table(["shard", "PE", "bytes"]);
            rows.add_row(["a long name", "P1", "12345678"]);
            rows.add_row(["b", "P20"]);
            rows.shorten_names(least, width);
            lines(rows, 1)
        };
        let all =
            "  shard         PE     bytes\n  a long name   P1  12345678\n  b            P20\n";
        assert_eq!(fit(1, None), all);
        assert_eq!(fit(1, Some(28)), all);
        let shorter = "  shard     PE     bytes\n  a l…ame   P1  12345678\n  b        P20\n";
        assert_eq!(fit(1, Some(24)), shorter);
        assert_eq!(fit(7, Some(10)), shorter);
    }

    #[test]
    fn explanations_are_wrapped_between_words() {
        let notes = [
            ("spread", "from min to p95".to_owned()),
            ("*", "least".to_owned()),
        ];
        let all = "  spread  from min to p95\n  *       least\n";
        assert_eq!(explained(&notes, None), all);
        assert_eq!(explained(&notes, Some(25)), all);
        let narrow = "  spread  from min to\n          p95\n  *       least\n";
        assert_eq!(explained(&notes, Some(24)), narrow);
        let narrowest =
            "  spread  from\n          min\n          to\n          p95\n  *       least\n";
        assert_eq!(explained(&notes, Some(1)), narrowest);
        assert_eq!(wrapped("took 12 ms in all", 7), ["took", "12 ms", "in all"]);
        assert_eq!(wrapped("", 7), [""]);
    }
}
