//! Statistics of many runs.

use std::fmt;

use twox_hash::XxHash3_128;

use super::{Kind, Outcome};

/// Sums over runs.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Number of runs, including retries.
    pub runs: u64,
    pub virtual_ns: u128,
    /// Number of rounds that every PE finished.
    pub rounds_finished: u64,
    /// Number of messages delivered, in all rounds.
    pub delivered: u64,
    /// Number of dropped frames of earlier rounds.
    pub late_frames: u64,
    /// Number of frames that the network duplicated.
    pub doubled_frames: u64,
    /// Number of duplicates that were received and dropped.
    pub repeated_frames: u64,
    /// Number of flits whose payload was damaged.
    pub damaged_payloads: u64,
}

impl Figures {
    pub fn add(&mut self, other: &Figures) {
        self.runs += other.runs;
        self.virtual_ns += other.virtual_ns;
        self.rounds_finished += other.rounds_finished;
        self.delivered += other.delivered;
        self.late_frames += other.late_frames;
        self.doubled_frames += other.doubled_frames;
        self.repeated_frames += other.repeated_frames;
        self.damaged_payloads += other.damaged_payloads;
    }
}

/// Statistics of many seeds.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub seeds: u64,
    pub figures: Figures,
    /// Number of faults by index in [`Kind::NAMES`].
    pub faults: [u64; Kind::NAMES.len()],
    /// Number of rounds that were given up.
    pub rounds_given_up: u64,
    /// Number of seeds whose messages are split over several trees.
    pub on_several_trees: u64,
    /// A hash of the traces, in order, which is the same on every machine and in every build.
    pub trace: u128,
    /// Seeds that violate a guarantee, each with its first finding.
    pub findings: Vec<(u64, String)>,
}

impl Tally {
    pub fn add(&mut self, outcome: &Outcome) {
        self.seeds += 1;
        self.figures.add(&outcome.figures);
        for fault in &outcome.scenario.faults {
            self.faults[fault.kind.place()] += 1;
        }
        self.rounds_given_up += outcome.given_up.len() as u64;
        self.on_several_trees += u64::from(outcome.scenario.lanes.len() > 1);
        let traces = [self.trace, outcome.trace].map(u128::to_be_bytes);
        self.trace = XxHash3_128::oneshot(traces.as_flattened());
        if let Some(finding) = outcome.findings.first() {
            let seed = outcome.scenario.seed;
            self.findings.push((seed, finding.to_string()));
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut row = |name: &str, figure: &dyn fmt::Display| {
            let figure = figure.to_string();
            writeln!(f, "{name:<28}{figure:>14}")
        };
        let figures = &self.figures;
        row("seeds", &self.seeds)?;
        row("on several trees at once", &self.on_several_trees)?;
        row("runs", &figures.runs)?;
        let hours = figures.virtual_ns as f64 / 3.6e12;
        row("simulated hours", &format_args!("{hours:.2}"))?;
        row("rounds that ended well", &figures.rounds_finished)?;
        row("rounds given up", &self.rounds_given_up)?;
        row("messages delivered", &figures.delivered)?;
        for (name, faults) in Kind::NAMES.iter().zip(self.faults) {
            row(name, &faults)?;
        }
        row("doubled frames", &figures.doubled_frames)?;
        row("repeated frames dropped", &figures.repeated_frames)?;
        row("late frames dropped", &figures.late_frames)?;
        row("flits damaged", &figures.damaged_payloads)?;
        row("trace", &format_args!("{:032x}", self.trace))?;
        row("findings", &self.findings.len())?;
        for (seed, finding) in &self.findings {
            writeln!(f, "  seed {seed}: {finding}")?;
        }
        Ok(())
    }
}
