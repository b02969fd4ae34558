//! Comparison of algorithms for broadcasts, gossips on a tree and exchanges: their steps, and the flits
//! that a PE keeps for others meanwhile. The callers choose the algorithms.

use flitcast_plan::algorithms::timetable::Timetable;
use flitcast_proto::PeId;
use serde::Serialize;
use serde_json::json;

use flitcast_cluster::options::format::Format;
use flitcast_cluster::text::figures::{self, beside, fitted, heading};
use flitcast_cluster::text::phrases::counted;
use flitcast_cluster::text::screen::columns;

/// The result of a comparison.
#[derive(Default, Serialize)]
pub struct Comparison {
    pub operation: &'static str,
    /// The ports of a PE; "shared" in a complete network.
    pub ports: &'static str,
    pub pes: usize,
    /// The source of a broadcast.
    #[serde(skip)]
    pub source: Option<PeId>,
    pub flits: u64,
    pub bound_steps: u64,
    /// The trees or networks that the bound holds for, as human-readable text; empty if it holds for
    /// any.
    #[serde(skip)]
    pub bound_over: &'static str,
    pub results: Vec<Row>,
    pub why: Option<String>,
    /// Remarks on the whole comparison, as human-readable text.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// One algorithm.
#[derive(Serialize)]
pub struct Row {
    /// The given tree, or the network on which the algorithm builds its own.
    pub tree: String,
    pub algorithm: String,
    pub time_steps: u64,
    pub over_bound: f64,
    /// The largest number of flits that a PE keeps for others at the end of a step.
    pub kept_flits: u64,
    pub best: bool,
}

impl Row {
    /// Creates a row that is not compared with the others yet.
    pub fn new(tree: &str, algorithm: impl Into<String>, plan: &Timetable) -> Row {
        Row {
            tree: tree.to_owned(),
            algorithm: algorithm.into(),
            time_steps: plan.time_steps,
            over_bound: 1.0,
            kept_flits: plan.kept_flits(),
            best: false,
        }
    }
}

impl Comparison {
    /// Completes the comparison of all rows.
    pub fn compared(mut self) -> Comparison {
        for row in self.results.iter_mut().filter(|_| self.bound_steps > 0) {
            row.over_bound = row.time_steps as f64 / self.bound_steps as f64;
        }
        let key = |place: &usize| {
            let row = &self.results[*place];
            (row.time_steps, row.kept_flits)
        };
        let best = (0..self.results.len()).min_by_key(key);
        self.why = best.and_then(|place| self.why(place));
        if let Some(place) = best {
            self.results[place].best = true;
        }
        self
    }

    /// Explains in one line why a row is the best; empty if there is no other row.
    fn why(&self, place: usize) -> Option<String> {
        let row = &self.results[place];
        let others = self.results.iter().enumerate();
        let others = others.filter(|(other, _)| *other != place);
        let next = others.min_by_key(|(_, other)| (other.time_steps, other.kept_flits));
        let (_, next) = next?;
        let has_one_tree = self.results.iter().all(|other| other.tree == row.tree);
        let named = |row: &Row| match has_one_tree {
            true => row.algorithm.clone(),
            false => format!("{} on {}", row.algorithm, row.tree),
        };
        let bound_met = match row.time_steps == self.bound_steps {
            true => ", which is the bound",
            false => "",
        };
        let behind = next.time_steps - row.time_steps;
        let reason = if behind > 0 {
            let behind = counted(behind, "step", "steps");
            format!("{behind} before {}", named(next))
        } else if row.kept_flits < next.kept_flits {
            let kept = counted(next.kept_flits, "flit", "flits");
            format!("as fast as {}, where a PE keeps {kept}", named(next))
        } else {
            format!("no slower than {}", named(next))
        };
        let steps = counted(row.time_steps, "step", "steps");
        Some(format!("{}: {steps}{bound_met}; {reason}", named(row)))
    }

    /// Returns the comparison as it is printed.
    pub fn printed(&self, format: Format) -> String {
        match format {
            Format::Json => format!("{:#}\n", json!(self)),
            _ => self.text(),
        }
    }

    fn text(&self) -> String {
        let header = ["", "tree", "algorithm", "steps", "over bound", "most kept"];
        let mut table = figures::table(header);
        for row in &self.results {
            table.add_row([
                if row.best { "*" } else { "" }.to_owned(),
                row.tree.clone(),
                row.algorithm.clone(),
                row.time_steps.to_string(),
                format!("{:.3}", row.over_bound),
                row.kept_flits.to_string(),
            ]);
        }
        let title = format!(
            "{} of {}{} over {}, {} ports; no schedule{} takes less than {}",
            self.operation,
            counted(self.flits, "flit", "flits"),
            self.source
                .map_or(String::new(), |pe| format!(" from {pe}")),
            counted(self.pes as u64, "PE", "PEs"),
            self.ports,
            self.bound_over,
            counted(self.bound_steps, "step", "steps"),
        );
        let width = columns();
        let heading = heading(&title, width);
        let why = self.why.iter().map(|why| beside("*", 2, why, width));
        let notes = self.notes.iter().map(|note| beside("", 0, note, width));
        let mut notes: String = why.chain(notes).collect();
        if !notes.is_empty() {
            notes.insert(0, '\n');
        }
        let table = fitted(table, 3, &["most kept", "over bound", "tree"], width);
        format!("{heading}\n\n{table}{notes}")
    }
}
