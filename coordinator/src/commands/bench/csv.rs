//! A bench as CSV: a line for each algorithm, plain numbers, their units in the header.

use super::args::Bench;
use super::measure::Figures;
use crate::rounds::outcome::Spread;

const COLUMNS: [&str; 18] = [
    "operation",
    "tree",
    "lengths",
    "rounds",
    "algorithm",
    "predicted_us",
    "min_us",
    "median_us",
    "p95_us",
    "max_us",
    "spread_pct",
    "error_pct",
    "goodput_bytes_per_s",
    "collisions",
    "peak_buffered_flits",
    "slip_median_us",
    "slip_max_us",
    "security",
];

/// The header and the lines.
///
/// # Errors
///
/// None that memory can give.
pub fn csv(bench: &Bench, figures: &[Figures]) -> std::io::Result<Vec<u8>> {
    let mut csv = ::csv::Writer::from_writer(Vec::new());
    csv.write_record(COLUMNS)?;
    for f in figures {
        let slip = |pick: fn(Spread) -> u64| f.slip.map_or(String::new(), |s| micros(pick(s)));
        csv.write_record([
            bench.operation.to_owned(),
            bench.tree.clone(),
            bench.lengths.clone(),
            bench.rounds.to_string(),
            f.algorithm.to_owned(),
            micros(f.predicted_ns),
            micros(f.measured.min),
            micros(f.measured.median),
            micros(f.measured.p95),
            micros(f.measured.max),
            format!("{:.1}", f.spread_pct()),
            format!("{:.1}", f.error_pct()),
            format!("{:.0}", f.goodput_bytes_per_s),
            f.collisions.to_string(),
            f.peak_buffered_flits.to_string(),
            slip(|s| s.median),
            slip(|s| s.max),
            bench.guard.name().to_owned(),
        ])?;
    }
    csv.into_inner().map_err(|error| error.into_error())
}

/// Nanoseconds as microseconds, to the last digit.
pub fn micros(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}
