//! A reader and a writer of TOML files, the only ones: [`parse`] reads a file key by key (`table`) and
//! reports all its faults at once, each with its position; `writer` returns the lines of keys.
//! No file's keys are defined here.

mod reader;
mod table;
pub mod writer;

pub use reader::Reader;
pub use table::{Field, Table, parse};
