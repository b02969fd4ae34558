//! A bench as a table: a row for each algorithm, the fastest first. Columns that do not fit into
//! the width of the terminal follow in further tables.

use super::checked::Bench;
use super::measure::passes;
use super::samples::Figures;
use flitcast_cluster::rounds::outcome::MedianMinMax;
use flitcast_cluster::text::figures::{self, explained, lines};
use flitcast_cluster::text::units::{Bytes, Nanos, Rate};
use flitcast_cluster::text::words::counted;

/// A heading with the cells of its column.
type Column = (&'static str, Vec<String>);

/// Formats the table, a heading above it, and the meaning of the columns below. `width` is the
/// width of the terminal in characters; `None` if there is no terminal.
pub fn table(bench: &Bench, mut figures: Vec<Figures>, width: Option<usize>) -> String {
    figures.sort_by_key(|f| f.measured.median);
    let mut out = heading(bench);
    let mut columns = columns(bench, &figures);
    let names = columns.remove(0);
    let blocks = fold(&names, columns, width.unwrap_or(usize::MAX));
    for block in blocks {
        let headings: Vec<&str> = block.iter().map(|(heading, _)| *heading).collect();
        let mut table = figures::table(headings);
        for row in 0..figures.len() {
            table.add_row(block.iter().map(|(_, cells)| &cells[row]));
        }
        out.push_str(&lines(table, 1));
        out.push('\n');
    }
    out.push_str(&footnotes(bench, &figures, width));
    out
}

fn heading(bench: &Bench) -> String {
    let passes = passes(bench.rounds);
    let mut out = format!(
        "{} {}, {}: {}, {}, {} in flits of {}\n",
        bench.operation,
        bench.tree,
        bench.lengths,
        counted(bench.pes as u64, "PE", "PEs"),
        counted(bench.messages, "message", "messages"),
        Bytes(bench.bytes),
        Bytes(bench.flit_bytes.into()),
    );
    out.push_str(&format!(
        "{} of each in {}",
        counted(bench.rounds, "round", "rounds"),
        counted(passes, "pass", "passes"),
    ));
    out.push_str(&match bench.warm_up {
        0 => "\n\n".to_owned(),
        warm_up => format!(", {warm_up} more to warm up in each pass\n\n"),
    });
    out
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

/// Divides the columns into tables that fit, each with the names first.
fn fold(names: &Column, columns: Vec<Column>, width: usize) -> Vec<Vec<Column>> {
    // Rows are indented by two characters; columns are separated by two.
    let size = |(heading, cells): &Column| {
        let cells = cells.iter().map(|cell| cell.chars().count());
        cells.fold(heading.len(), usize::max) + 2
    };
    let mut blocks: Vec<Vec<Column>> = Vec::new();
    let mut taken = usize::MAX;
    for column in columns {
        let wanted = size(&column);
        if taken.saturating_add(wanted) > width || blocks.is_empty() {
            blocks.push(vec![names.clone()]);
            taken = size(names);
        }
        taken += wanted;
        if let Some(block) = blocks.last_mut() {
            block.push(column);
        }
    }
    blocks
}

fn footnotes(bench: &Bench, figures: &[Figures], width: Option<usize>) -> String {
    let mut notes: Vec<(&str, String)> = Vec::new();
    if let [best, next, ..] = figures {
        let (best_ns, next_ns) = (best.measured.median, next.measured.median);
        let less = (next_ns - best_ns) as f64 / next_ns as f64 * 100.0;
        notes.push((
            "*",
            format!(
                "the least median, {less:.0} % below that of {}",
                next.algorithm
            ),
        ));
    }
    notes.push((
        "spread",
        "from min to p95, in % of the median; p95 by nearest rank".to_owned(),
    ));
    notes.push(("error", "predicted - median, in % of the median".to_owned()));
    notes.push((
        "collisions",
        "flits that waited for a busy port, in the worst round".to_owned(),
    ));
    if figures.iter().any(|f| f.slip.is_some()) {
        let slip = "from when an own message was due until it started: median, max";
        notes.push(("slip", slip.to_owned()));
    }
    notes.extend(trees(bench, figures).into_iter().map(|note| ("tree", note)));
    notes.extend(skipped(bench).into_iter().map(|note| ("skipped", note)));
    notes.extend(bench.guard.told().map(|told| ("security", told)));
    if let Some(raw) = &bench.raw {
        notes.push(("samples", format!("in {}", raw.path().display())));
    }
    notes.push((
        "verified",
        "every byte and digest of every round matched".to_owned(),
    ));
    explained(&notes, width)
}

/// Lists the trees with their algorithms, if not all algorithms used the requested tree.
fn trees(bench: &Bench, figures: &[Figures]) -> Vec<String> {
    let named = figures.iter().map(|f| (f.tree.as_str(), f.algorithm));
    let all = grouped(named);
    match all.as_slice() {
        [(tree, _)] if *tree == bench.tree => Vec::new(),
        _ => all
            .into_iter()
            .map(|(tree, names)| format!("{tree}: {}", names.join(", ")))
            .collect(),
    }
}

fn skipped(bench: &Bench) -> Vec<String> {
    let reasons: Vec<String> = bench.skipped.iter().map(|s| s.why.to_string()).collect();
    let named = reasons.iter().map(String::as_str);
    let named = named.zip(bench.skipped.iter().map(|s| s.algorithm));
    grouped(named)
        .into_iter()
        .map(|(why, names)| format!("{}: {why}", names.join(", ")))
        .collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_do_not_fit_come_below() {
        let column = |heading: &'static str| (heading, vec!["12345".to_owned()]);
        // Each column is twelve characters wide, including the gap.
        let names = ("algorithm", vec!["0123456789".to_owned()]);
        let columns: Vec<Column> = ["predicted_", "b", "c", "d"].map(column).to_vec();
        let headings = |width: usize| -> Vec<Vec<&str>> {
            let blocks = fold(&names, columns.clone(), width);
            let headings = |block: Vec<Column>| block.into_iter().map(|(heading, _)| heading);
            blocks
                .into_iter()
                .map(|block| headings(block).collect())
                .collect()
        };
        let first = "algorithm";
        assert_eq!(headings(usize::MAX), [[first, "predicted_", "b", "c", "d"]]);
        assert_eq!(headings(45), [[first, "predicted_", "b", "c", "d"]]);
        let two = [vec![first, "predicted_", "b", "c"], vec![first, "d"]];
        assert_eq!(headings(44), two);
        let each = columns.iter().map(|(heading, _)| vec![first, *heading]);
        assert_eq!(
            headings(1),
            each.collect::<Vec<_>>(),
            "too narrow for anything"
        );
    }
}
