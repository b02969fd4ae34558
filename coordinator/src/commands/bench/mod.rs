//! `flitcast bench`: times the algorithms on one tree and one set of lengths, each as a
//! round really runs, beside what was predicted of it.

mod args;
mod csv;
mod ended;
mod json;
mod measure;
mod raw;
mod table;

use std::io::{self, Write};

pub use args::{Bench, BenchArgs};
pub use ended::time_and_report;
use measure::{BenchEnd, Figures, run};

use crate::options::format::Format;
use crate::system::terminal;

/// Prints the result.
///
/// # Errors
///
/// It cannot be written.
fn print(bench: &Bench, figures: Vec<Figures>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match bench.format {
        Format::Json => out.write_all(json::json(bench, &figures).as_bytes()),
        Format::Csv => {
            // Its lines have no place for what did not run.
            for skipped in &bench.skipped {
                eprintln!("skipped: {} is {}", skipped.algorithm, skipped.why);
            }
            out.write_all(&csv::csv(bench, &figures)?)
        }
        _ => {
            // Zero is what a terminal says that does not know.
            let width = terminal::size(&out).map(|(_, columns)| columns);
            let width = width.filter(|&width| width > 0);
            out.write_all(table::table(bench, figures, width).as_bytes())
        }
    }
}
