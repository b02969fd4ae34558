//! A bench as CSV: a line for each algorithm; the header contains the units.

use super::checked::Bench;
use super::csv_line::{line, micros};
use super::samples::Figures;
use flitcast_cluster::rounds::outcome::MedianMinMax;

/// Returns the header and the lines.
pub fn csv(bench: &Bench, figures: &[Figures]) -> String {
    let mut text = String::new();
    for (place, f) in figures.iter().enumerate() {
        let columns = columns(bench, f);
        if place == 0 {
            text += &line(columns.iter().map(|(name, _)| *name));
        }
        text += &line(columns.iter().map(|(_, value)| value.as_str()));
    }
    text
}

fn columns(bench: &Bench, f: &Figures) -> [(&'static str, String); 18] {
    let slip = |pick: fn(MedianMinMax) -> u64| f.slip.map_or(String::new(), |s| micros(pick(s)));
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
