//! Statistics of many runs.

use std::fmt;

use xxhash_rust::xxh3::xxh3_128;

use super::{Kind, Outcome};

/// Statistics of many runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Number of seeds.
    pub seeds: u64,
    /// Number of runs, including retries.
    pub runs: u64,
    /// Total virtual time.
    pub virtual_ns: u128,
    /// Number of faults by index in [`Kind::NAMES`].
    pub faults: [u64; Kind::NAMES.len()],
    /// Number of rounds that every PE finished.
    pub rounds_well: u64,
    /// Number of rounds that were given up.
    pub rounds_given_up: u64,
    /// Number of messages delivered.
    pub delivered: u64,
    /// Number of frames that the network duplicated.
    pub doubled_frames: u64,
    /// Number of duplicates that were received and dropped.
    pub repeated_frames: u64,
    /// Number of flits whose payload was damaged.
    pub damaged_payloads: u64,
    /// Number of seeds whose messages are split over several trees.
    pub on_several_trees: u64,
    /// Number of frames that were dropped because their round was over.
    pub late_frames: u64,
    /// A hash of the traces, in order, which is the same on every machine and in every build.
    pub trace: u128,
    /// Seeds that violate a guarantee, each with its first finding.
    pub findings: Vec<(u64, String)>,
}

impl Tally {
    /// Adds a run.
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
        self.damaged_payloads += outcome.damaged_payloads;
        self.on_several_trees += u64::from(outcome.scenario.lanes.len() > 1);
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
        row(
            "on several trees at once",
            self.on_several_trees.to_string(),
        )?;
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
        row("flits damaged", self.damaged_payloads.to_string())?;
        row("trace", format!("{:032x}", self.trace))?;
        row("findings", self.findings.len().to_string())?;
        for (seed, finding) in &self.findings {
            writeln!(f, "  seed {seed}: {finding}")?;
        }
        Ok(())
    }
}
