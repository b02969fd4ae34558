//! A bench as CSV: a line for each algorithm; the header contains the units.

use super::args::Bench;
use super::measure::Figures;
use crate::rounds::outcome::Spread;

/// Returns the header and the lines.
///
/// # Errors
///
/// Returns an error if the CSV writer does; writing to memory does not fail.
pub fn csv(bench: &Bench, figures: &[Figures]) -> std::io::Result<Vec<u8>> {
    let mut csv = ::csv::Writer::from_writer(Vec::new());
    for (place, f) in figures.iter().enumerate() {
        let (columns, line): (Vec<_>, Vec<_>) = columns(bench, f).into_iter().unzip();
        if place == 0 {
            csv.write_record(columns)?;
        }
        csv.write_record(line)?;
    }
    csv.into_inner().map_err(|error| error.into_error())
}

fn columns(bench: &Bench, f: &Figures) -> [(&'static str, String); 18] {
    let slip = |pick: fn(Spread) -> u64| f.slip.map_or(String::new(), |s| micros(pick(s)));
    [
        ("operation", bench.operation.to_owned()),
        ("tree", bench.tree.clone()),
        ("lengths", bench.lengths.clone()),
        ("rounds", bench.rounds.to_string()),
        ("algorithm", f.algorithm.to_owned()),
        ("predicted_us", micros(f.predicted_ns)),
        ("min_us", micros(f.measured.min)),
        ("median_us", micros(f.measured.median)),
        ("p95_us", micros(f.measured.p95)),
        ("max_us", micros(f.measured.max)),
        ("spread_pct", format!("{:.1}", f.spread_pct())),
        ("error_pct", format!("{:.1}", f.error_pct())),
        (
            "goodput_bytes_per_s",
            format!("{:.0}", f.goodput_bytes_per_s),
        ),
        ("collisions", f.collisions.to_string()),
        ("peak_buffered_flits", f.peak_buffered_flits.to_string()),
        ("slip_median_us", slip(|s| s.median)),
        ("slip_max_us", slip(|s| s.max)),
        ("security", bench.guard.name().to_owned()),
    ]
}

/// Formats nanoseconds as microseconds, with all digits.
pub fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
