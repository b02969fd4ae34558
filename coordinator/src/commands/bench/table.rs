//! A bench as a table: a row for each algorithm, the fastest first.

use super::checked::Bench;
use super::measure::passes;
use super::samples::Figures;
use flitcast_cluster::rounds::outcome::MedianMinMax;
use flitcast_cluster::text::figures::{self, explained, fitted, heading};
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::units::{Bytes, Nanos, Rate};

/// A heading with the cells of its column.
type Column = (&'static str, Vec<String>);

/// The columns from the least important one on.
const LEAST: [&str; 9] = [
    "max slip",
    "slip",
    "collisions",
    "goodput",
    "min",
    "p95",
    "spread",
    "error",
    "predicted",
];

/// Formats the table, a heading above it, and the meaning of the columns below. `width` is the
/// width of the terminal in characters; `None` if there is no terminal.
pub fn table(bench: &Bench, mut figures: Vec<Figures>, width: Option<usize>) -> String {
    figures.sort_by_key(|f| f.measured.median);
    let columns = columns(bench, &figures);
    let mut table = figures::table(columns.iter().map(|(heading, _)| *heading));
    for row in 0..figures.len() {
        table.add_row(columns.iter().map(|(_, cells)| &cells[row]));
    }
    let table = fitted(table, 1, &LEAST, width);
    let mut notes = footnotes(bench, &figures);
    let shown = table.lines().next().unwrap_or_default();
    notes.retain(|(label, _)| !LEAST.contains(label) || shown.contains(label));
    let heading = heading(&title(bench), width);
    let (rounds, notes) = (rounds(bench), explained(&notes, width));
    format!("{heading}\n{rounds}\n\n{table}\n{notes}")
}

fn title(bench: &Bench) -> String {
    format!(
        "{} {}, {}: {}, {}, {} in flits of {}",
        bench.operation,
        bench.tree,
        bench.lengths,
        counted(bench.pes as u64, "PE", "PEs"),
        counted(bench.messages, "message", "messages"),
        Bytes(bench.bytes),
        Bytes(bench.flit_bytes.into()),
    )
}

fn rounds(bench: &Bench) -> String {
    let rounds = counted(bench.rounds, "round", "rounds");
    let passes = counted(passes(bench.rounds), "pass", "passes");
    let warm_up = match bench.warm_up {
        0 => String::new(),
        warm_up => format!(", {warm_up} more to warm up in each pass"),
    };
    format!("{rounds} of each in {passes}{warm_up}")
}

/// Returns the columns; the first contains the names.
fn columns(bench: &Bench, figures: &[Figures]) -> Vec<Column> {
    let cells = |cell: &dyn Fn(&Figures) -> String| figures.iter().map(cell).collect();
    let nanos = |pick: fn(&Figures) -> Option<u64>| {
        cells(&|f| pick(f).map_or("-".to_owned(), |ns| Nanos(ns).to_string()))
    };
    let mut names: Vec<String> = cells(&|f| format!("  {}", f.algorithm));
    if let (Some(best), 2..) = (names.first_mut(), figures.len()) {
        best.replace_range(..1, "*");
    }
    let mut columns = vec![
        ("  algorithm", names),
        ("predicted", nanos(|f| Some(f.predicted_ns))),
        ("median", nanos(|f| Some(f.measured.median))),
        ("min", nanos(|f| Some(f.measured.min))),
        ("p95", nanos(|f| Some(f.measured.p95))),
        ("spread", cells(&|f| format!("{:.0} %", f.spread_pct()))),
        ("error", cells(&|f| format!("{:+.0} %", f.error_pct()))),
        ("goodput", cells(&|f| rate(bench.bytes, f.measured))),
        ("collisions", cells(&|f| f.collisions.to_string())),
    ];
    if figures.iter().any(|f| f.slip.is_some()) {
        columns.push(("slip", nanos(|f| f.slip.map(|slip| slip.median))));
        columns.push(("max slip", nanos(|f| f.slip.map(|slip| slip.max))));
    }
    columns
}

fn rate(bytes: u64, measured: MedianMinMax) -> String {
    let nanos = measured.median;
    Rate { bytes, nanos }.to_string()
}

/// Returns the explained words below the table.
fn footnotes(bench: &Bench, figures: &[Figures]) -> Vec<(&'static str, String)> {
    let mut notes = Vec::new();
    if let [best, next, ..] = figures {
        let (best_ns, next_ns) = (best.measured.median, next.measured.median);
        let less = (next_ns - best_ns) as f64 / next_ns as f64 * 100.0;
        let least = format!(
            "the least median, {less:.0} % below that of {}",
            next.algorithm
        );
        notes.push(("*", least));
    }
    let spread = "from min to p95, in % of the median; p95 by nearest rank";
    notes.push(("spread", spread.to_owned()));
    notes.push(("error", "predicted - median, in % of the median".to_owned()));
    let collisions = "flits that waited for a busy port, in the worst round";
    notes.push(("collisions", collisions.to_owned()));
    if figures.iter().any(|f| f.slip.is_some()) {
        let slip = "from when an own message was due until it started: median, max";
        notes.push(("slip", slip.to_owned()));
    }
    notes.extend(trees(bench, figures).into_iter().map(|note| ("tree", note)));
    notes.extend(skipped(bench).into_iter().map(|note| ("skipped", note)));
    notes.extend(bench.guard.description().map(|it| ("security", it)));
    if let Some(raw) = &bench.raw {
        notes.push(("samples", format!("in {}", raw.path().display())));
    }
    let verified = "every byte and digest of every round matched";
    notes.push(("verified", verified.to_owned()));
    notes
}

/// Lists the trees with their algorithms, if not all algorithms used the requested tree.
fn trees(bench: &Bench, figures: &[Figures]) -> Vec<String> {
    let named = figures.iter().map(|f| (f.tree.as_str(), f.algorithm));
    let all = grouped(named);
    if matches!(&all[..], [(tree, _)] if *tree == bench.tree) {
        return Vec::new();
    }
    let line = |(tree, names): &(&str, Vec<_>)| format!("{tree}: {}", names.join(", "));
    all.iter().map(line).collect()
}

fn skipped(bench: &Bench) -> Vec<String> {
    let reasons: Vec<String> = bench.skipped.iter().map(|s| s.why.to_string()).collect();
    let named = reasons.iter().map(String::as_str);
    let named = named.zip(bench.skipped.iter().map(|s| s.algorithm));
    let groups = grouped(named).into_iter();
    let groups = groups.map(|(why, names)| format!("{}: {why}", names.join(", ")));
    groups.collect()
}

/// Groups the names by their keys, in the order of each key's first name.
fn grouped<'a>(
    named: impl Iterator<Item = (&'a str, &'static str)>,
) -> Vec<(&'a str, Vec<&'static str>)> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (key, name) in named {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, names)) => names.push(name),
            None => groups.push((key, vec![name])),
        }
    }
    groups
}
