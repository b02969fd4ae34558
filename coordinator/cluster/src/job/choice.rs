//! A choice and its alternatives, as reports show them.

use std::fmt;

use serde::Serialize;

use crate::text::figures::as_micros;
use crate::text::phrases::counted;
use crate::text::units::{Bytes, Nanos};

/// The chosen algorithm, and its alternatives.
#[derive(Clone, Debug, Serialize)]
pub struct Choice {
    /// The number of predictions.
    pub ways: usize,
    /// The number of alternatives.
    pub alternatives: usize,
    /// The number of alternatives that a lower bound of their time excluded.
    pub excluded: usize,
    /// The number of alternatives for which there was no time.
    pub skipped: usize,
    /// The time that the choice took.
    #[serde(rename = "took_us", serialize_with = "as_micros")]
    pub took_ns: u64,
    /// The choice.
    pub chosen: Forecast,
    /// The number of alternatives that take about as long, and more memory or more edges one after the other.
    pub alike: usize,
    /// The next best on another tree or by another algorithm, if there is one.
    pub runner_up: Option<Forecast>,
    /// The best prediction of each algorithm on each tree, the quickest first; with their steps if all
    /// alternatives are predicted.
    #[serde(skip)]
    pub all: Vec<Forecast>,
}

/// The predicted duration of a round by one algorithm on one tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Forecast {
    /// The algorithm's name.
    pub algorithm: &'static str,
    /// The tree's name.
    pub tree: String,
    /// Payload bytes of a full flit.
    pub flit_bytes: u32,
    /// Predicted duration in nanoseconds.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// Steps in the papers' model, if they were computed.
    #[serde(rename = "time_steps", skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flit = Bytes(self.flit_bytes.into());
        write!(f, "{} on {}, flits of {flit}", self.algorithm, self.tree)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [time, took] = [self.chosen.predicted_ns, self.took_ns].map(Nanos);
        let (chosen, ways) = (&self.chosen, self.ways);
        write!(
            f,
            "{chosen}: {time} predicted, the least of {ways} predictions"
        )?;
        write!(f, " in {took}")?;
        if self.skipped > 0 {
            let skipped = counted(self.skipped as u64, "alternative", "alternatives");
            write!(f, " (no time for {skipped} more)")?;
        }
        if self.alike > 0 {
            let alike = counted(self.alike as u64, "other", "others");
            write!(f, ", {alike} about equal")?;
        }
        if let Some(next) = &self.runner_up {
            let more = next.predicted_ns as f64 / self.chosen.predicted_ns.max(1) as f64 - 1.0;
            let time = Nanos(next.predicted_ns);
            write!(f, "; next {next}: {time} ({:+.1} %)", more * 100.0)?;
        }
        Ok(())
    }
}
