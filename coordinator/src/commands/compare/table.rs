//! The comparison of scatters or gathers: the rows, the best of them, and the reason.

use flitcast_plan::baseline::Flow;
use serde::Serialize;

use flitcast_cluster::job::on_links::OnLinks;
use flitcast_cluster::text::figures::{self, beside, fitted, heading};
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::screen::columns;
use flitcast_cluster::text::units::Nanos;

#[derive(Serialize)]
pub struct Comparison {
    operation: &'static str,
    lower_bound_steps: u64,
    results: Vec<Row>,
    why: Option<String>,
}

/// One algorithm on one tree.
#[derive(Serialize)]
pub struct Row {
    pub tree: String,
    pub algorithm: String,
    pub time_steps: u64,
    pub over_lower_bound: f64,
    pub control_steps: u64,
    pub largest_buffer_flits: u64,
    /// Whether its PEs wait for P0; otherwise they start on their own.
    pub waits_for_root: bool,
    /// The time on the requested links. Along a tree the baselines have none, since their PEs send to
    /// others than their neighbours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_links: Option<OnLinks>,
    pub best: bool,
}

impl Row {
    /// Creates a row that is not compared with the others yet.
    pub fn new(tree: &str, algorithm: String, flow: Flow) -> Row {
        Row {
            tree: tree.to_owned(),
            algorithm,
            time_steps: flow.time_steps,
            over_lower_bound: 1.0,
            control_steps: flow.control_steps,
            largest_buffer_flits: flow.largest_buffer_flits,
            waits_for_root: true,
            on_links: None,
            best: false,
        }
    }
}

impl Comparison {
    pub fn of(mut rows: Vec<Row>, bound: u64, operation: &'static str) -> Comparison {
        for row in rows.iter_mut().filter(|_| bound > 0) {
            row.over_lower_bound = row.time_steps as f64 / bound as f64;
        }
        let best = best(&rows);
        if let Some(place) = best {
            rows[place].best = true;
        }
        Comparison {
            operation,
            lower_bound_steps: bound,
            why: best.map(|place| why(&rows, place, bound)),
            results: rows,
        }
    }
}

/// Returns the best row: least time, then least control, then least buffer.
fn best(rows: &[Row]) -> Option<usize> {
    let key = |row: &Row| (row.time_steps, row.control_steps, row.largest_buffer_flits);
    (0..rows.len()).min_by_key(|&place| key(&rows[place]))
}

/// The columns from the least important one on.
const LEAST: [&str; 4] = ["control", "largest buffer", "over bound", "tree"];

/// Returns the comparison as human-readable text.
pub fn table(comparison: &Comparison, pes: usize, total: u64) -> String {
    let rows = &comparison.results;
    let has_links = rows.iter().any(|row| row.on_links.is_some());
    let headings = [
        "",
        "tree",
        "algorithm",
        "steps",
        "over bound",
        "control",
        "largest buffer",
    ];
    let on_links = has_links.then_some("on links");
    let mut table = figures::table(headings.into_iter().chain(on_links));
    for row in rows {
        let unasked = if row.waits_for_root { "" } else { " (unasked)" };
        table.add_row(
            [
                if row.best { "*" } else { "" }.to_owned(),
                row.tree.clone(),
                format!("{}{unasked}", row.algorithm),
                row.time_steps.to_string(),
                format!("{:.3}", row.over_lower_bound),
                row.control_steps.to_string(),
                row.largest_buffer_flits.to_string(),
                row.on_links
                    .map_or(String::new(), |it| Nanos(it.time_ns).to_string()),
            ]
            .into_iter()
            .take(7 + usize::from(has_links)),
        );
    }
    let title = format!(
        "{} of {} over {}; no schedule takes less than {}",
        comparison.operation,
        counted(total, "flit", "flits"),
        counted(pes as u64, "PE", "PEs"),
        counted(comparison.lower_bound_steps, "step", "steps"),
    );
    let width = columns();
    let mut out = heading(&title, width) + "\n\n";
    out.push_str(&fitted(table, 3, &LEAST, width));
    if let Some(why) = &comparison.why {
        out.push_str(&format!("\n{}", beside("*", 2, why, width)));
    }
    if rows.iter().any(|row| !row.waits_for_root) {
        let unasked = "every PE starts on its own, before P0 has said that it is ready";
        out.push_str(&beside("unasked:", 9, unasked, width));
    }
    out
}

/// Explains in one line why a row is the best.
fn why(rows: &[Row], place: usize, bound: u64) -> String {
    let row = &rows[place];
    let name = format!("{} on {}", row.algorithm, row.tree);
    let others = rows.iter().enumerate().filter(|(other, _)| *other != place);
    let Some((_, next)) = others.min_by_key(|(_, other)| other.time_steps) else {
        return name;
    };
    let bound_met = if row.time_steps == bound {
        ", which is the bound"
    } else {
        ""
    };
    let behind = next.time_steps - row.time_steps;
    let reason = if behind > 0 {
        let behind = counted(behind, "step", "steps");
        format!("{behind} before {} on {}", next.algorithm, next.tree)
    } else if row.control_steps < next.control_steps {
        let fewer = next.control_steps - row.control_steps;
        let fewer = counted(fewer, "control step", "control steps");
        format!("as fast as {} with {fewer} less", next.algorithm)
    } else if row.largest_buffer_flits < next.largest_buffer_flits {
        let buffered = counted(next.largest_buffer_flits, "flit", "flits");
        let algorithm = &next.algorithm;
        format!("as fast as {algorithm}, which buffers {buffered} in a PE")
    } else {
        format!("no slower than {}", next.algorithm)
    };
    let steps = counted(row.time_steps, "step", "steps");
    format!("{name}: {steps}{bound_met}; {reason}")
}
