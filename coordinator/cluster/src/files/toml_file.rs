//! A reader and a writer of TOML files, the only ones: [`parse`] reads a file key by key (`table`) and
//! reports all its faults at once, each with its position; `writer` returns the lines of keys.
//! No file's keys are defined here.

mod reader;
mod table;
pub mod writer;

use toml::de::DeTable;

pub use reader::Reader;
pub use table::{Field, Table};

use super::user_file::PositionedError;

/// Reads the document in `text` with `read`; returns at least one error otherwise, in the order of the
/// file. `read` returns `None` only after it has reported one.
pub fn parse<T>(
    text: &str,
    read: impl FnOnce(&Reader<'_>, &Table<'_, '_>) -> Option<T>,
) -> Result<T, Vec<PositionedError>> {
    let reader = Reader::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let spot = error.span().map(|span| reader.spot(span.start));
        reader.fault(spot, error.message());
    }
    // After a syntax error the structure of the rest is unknown.
    let value = match errors.is_empty() {
        true => read(&reader, &Table::top_level(&reader, document.get_ref())),
        false => None,
    };
    let mut faults = reader.faults.into_inner();
    match value {
        Some(value) if faults.is_empty() => Ok(value),
        _ => {
            faults.sort_by_key(|fault| fault.spot);
            Err(faults)
        }
    }
}
