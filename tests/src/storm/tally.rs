//! Many runs, added up.

use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

use super::{Kind, Outcome};

/// Figures of many runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Seeds.
    pub seeds: u64,
    /// Runs of clusters: those that went on with a failed one are counted.
    pub runs: u64,
    /// Their time, together.
    pub virtual_ns: u128,
    /// By the place in [`Kind::NAMES`].
    pub faults: [u64; Kind::NAMES.len()],
    /// Rounds that every PE finished.
    pub rounds_well: u64,
    /// Rounds that were given up.
    pub rounds_given_up: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Frames that were sent twice by the network.
    pub doubled_frames: u64,
    /// Of these, those that somebody met, and dropped.
    pub repeated_frames: u64,
    /// Frames dropped since their round was over.
    pub late_frames: u64,
    /// A hash of their traces, in order: the same on every machine, in every build.
    pub trace: u128,
    /// Seeds of runs that broke a promise, with the first one.
    pub findings: Vec<(u64, String)>,
}

impl Tally {
    /// One run more.
    pub fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.virtual_ns += u128::from(outcome.virtual_ns);
        for fault in &outcome.scenario.faults {
            self.faults[fault.kind.place()] += 1;
        }
        self.rounds_well += outcome.rounds_finished;
        self.rounds_given_up += outcome.given_up.len() as u64;
        self.runs += outcome.runs;
        self.delivered += outcome.delivered;
        self.doubled_frames += outcome.doubled_frames;
        self.repeated_frames += outcome.repeated_frames;
        self.late_frames += outcome.late_frames;
        let traces = [self.trace, outcome.trace].map(u128::to_be_bytes);
        self.trace = xxh3_128(traces.as_flattened());
        if let Some(finding) = outcome.findings.first() {
            let seed = outcome.scenario.seed;
            self.findings.push((seed, finding.to_string()));
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, figure: String| writeln!(f, "{name:<28}{figure:>14}");
        row("seeds", self.seeds.to_string())?;
        row("runs", self.runs.to_string())?;
        let hours = self.virtual_ns as f64 / 3.6e12;
        row("simulated hours", format!("{hours:.2}"))?;
        row("rounds that ended well", self.rounds_well.to_string())?;
        row("rounds given up", self.rounds_given_up.to_string())?;
        row("messages delivered", self.delivered.to_string())?;
        for (name, faults) in Kind::NAMES.iter().zip(self.faults) {
            row(name, faults.to_string())?;
        }
        row("doubled frames", self.doubled_frames.to_string())?;
        row("repeated frames dropped", self.repeated_frames.to_string())?;
        row("late frames dropped", self.late_frames.to_string())?;
        row("trace", format!("{:032x}", self.trace))?;
        row("findings", self.findings.len().to_string())?;
        for (seed, finding) in &self.findings {
            writeln!(f, "  seed {seed}: {finding}")?;
        }
        Ok(())
    }
}
