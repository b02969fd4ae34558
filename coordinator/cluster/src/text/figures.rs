//! Figures in results: in a human-readable table or in JSON.

use comfy_table::{CellAlignment, Row, Table, presets};
use flitcast_plan::fraction::Fraction;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// Creates a table without lines, with its header and no rows yet.
pub fn table(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

/// Formats a table as text: its first `names` columns are aligned left, the others, which are
/// figures, right.
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
