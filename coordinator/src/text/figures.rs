//! Figures as results show them: in a table for eyes, or in JSON for programs.

use comfy_table::{CellAlignment, Row, Table, presets};
use flitcast_proto::exact::Exact;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// A table that has its header and no rows yet, without lines between them.
pub fn table(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

/// A table as text: its first `names` columns to the left, the others, which are
/// figures, to the right.
pub fn lines(mut table: Table, names: usize) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
        if column.index >= names {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines = table.lines();
    lines
        .map(|line| format!("  {}\n", line.trim_end()))
        .collect()
}

/// As [`micros`], for a field of something that is printed whole.
///
/// # Errors
///
/// What the serializer says.
pub fn as_micros<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    micros(*ns).serialize(serializer)
}

/// A time that may be a fraction: an integer, or a string like `27/2`.
///
/// # Errors
///
/// What the serializer says.
pub fn as_exact<S: Serializer>(time: &Exact, serializer: S) -> Result<S::Ok, S::Error> {
    exact(*time).serialize(serializer)
}

/// The same as a value.
pub fn exact(time: Exact) -> Value {
    match time.whole().map(u64::try_from) {
        Some(Ok(number)) => json!(number),
        Some(Err(_)) | None => json!(time.to_string()),
    }
}

/// Such a time as people read it: with three decimals at most.
pub fn decimal(time: Exact) -> String {
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

/// Nanoseconds as microseconds, as JSON has all times.
pub fn micros(ns: u64) -> Value {
    json!(ns as f64 / 1000.0)
}
