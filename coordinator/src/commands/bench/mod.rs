//! `flitcast bench`: times the algorithms on one tree and one set of lengths in real rounds and
//! compares them with their predictions.

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
use crate::text::stderr;
use crate::text::stdout::unless_closed;

/// Prints the result.
///
/// # Errors
///
/// Returns an error if writing fails.
fn print(bench: &Bench, figures: Vec<Figures>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let printed = match bench.format {
        Format::Json => out.write_all(json::json(bench, &figures).as_bytes()),
        Format::Csv => {
            // The lines have no columns for algorithms that did not run.
            for skipped in &bench.skipped {
                let (algorithm, why) = (skipped.algorithm, &skipped.why);
                stderr::note(format_args!("skipped: {algorithm} is {why}"));
            }
            out.write_all(csv::csv(bench, &figures).as_bytes())
        }
        _ => {
            // A terminal that does not know its size reports zero.
            let width = terminal::size(&out).map(|(_, columns)| columns);
            let width = width.filter(|&width| width > 0);
            out.write_all(table::table(bench, figures, width).as_bytes())
        }
    };
    unless_closed(printed)
}
