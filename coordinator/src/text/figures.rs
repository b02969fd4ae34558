//! Figures as results show them: in a table for eyes, or in JSON for programs.

use comfy_table::{CellAlignment, Row, Table, presets};
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

/// Nanoseconds as microseconds, as JSON has all times.
pub fn micros(ns: u64) -> Value {
    json!(ns as f64 / 1000.0)
}
