//! Statistics of the ratio of two times.

use std::collections::BTreeMap;
use std::fmt;

/// The number of cases for each difference, by the number of PEs.
pub struct Comparison {
    what: &'static str,
    rows: BTreeMap<usize, Row>,
}

#[derive(Default)]
struct Row {
    by_difference: BTreeMap<i64, u64>,
    ratios: f64,
    /// The first case with the largest difference.
    worst: String,
}

impl Comparison {
    pub fn new(what: &'static str) -> Comparison {
        Comparison {
            what,
            rows: BTreeMap::new(),
        }
    }

    /// Takes one case on a tree of `pes` PEs.
    pub fn add(&mut self, pes: usize, steps: u64, base: u64, case: impl FnOnce() -> String) {
        let row = self.rows.entry(pes).or_default();
        let difference = steps as i64 - base as i64;
        let largest = row.by_difference.last_key_value();
        if largest.is_none_or(|(&largest, _)| difference > largest) {
            row.worst = format!("{difference:+} first at {}", case());
        }
        *row.by_difference.entry(difference).or_default() += 1;
        row.ratios += steps as f64 / base as f64;
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.what)?;
        writeln!(f, "PEs    cases  mean ratio  cases by difference in steps")?;
        for (pes, row) in &self.rows {
            let cases: u64 = row.by_difference.values().sum();
            let ratio = row.ratios / cases as f64;
            write!(f, "{pes:3} {cases:8}  {ratio:10.4} ")?;
            for (difference, count) in &row.by_difference {
                write!(f, " {difference:+}: {count}")?;
            }
            writeln!(f)?;
        }
        for (pes, Row { worst, .. }) in &self.rows {
            writeln!(f, "{pes:3}  {worst}")?;
        }
        Ok(())
    }
}
