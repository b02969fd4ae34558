//! The samples of a bench, and the figures of an algorithm that are computed from them.

use flitcast_cluster::rounds::outcome::{MedianMinMax, error_pct};

#[derive(Clone, Debug)]
pub struct Sample {
    /// Number of the pass, from 1.
    pub pass: u64,
    /// Number of the timed round of this algorithm, from 1.
    pub round: u64,
    /// Predicted duration, with the edges as measured in this pass.
    pub predicted_ns: u64,
    pub measured_ns: u64,
    /// Number of flits that had to wait for a busy port.
    pub collisions: u64,
    /// Delays between the scheduled and the actual starts of the PEs' own messages.
    pub slips_ns: Vec<u64>,
    /// Maximum number of flits of passing messages in the memory of one PE.
    pub peak_buffered_flits: u64,
}

#[derive(Clone, Debug)]
pub struct Figures {
    pub algorithm: &'static str,
    pub tree: String,
    /// Predicted duration of a round: the median over the passes.
    pub predicted_ns: u64,
    /// Measured durations of the rounds.
    pub measured: MedianMinMax,
    /// Total bytes of the messages, divided by the median duration.
    pub goodput_bytes_per_s: f64,
    /// Number of flits that had to wait for a busy port, in the worst round.
    pub collisions: u64,
    /// Maximum number of flits of passing messages in the memory of one PE.
    pub peak_buffered_flits: u64,
    /// Delays of the starts of the PEs' own messages, over PEs and rounds; `None` without scheduled
    /// starts.
    pub slip: Option<MedianMinMax>,
}

impl Figures {
    /// Computes the results; returns `None` if there are no samples.
    pub fn of(
        algorithm: &'static str,
        tree: &str,
        bytes: u64,
        samples: &[Sample],
    ) -> Option<Figures> {
        let measured = MedianMinMax::of(samples.iter().map(|sample| sample.measured_ns))?;
        let by_pass = samples.iter().map(|it| (it.pass, it.predicted_ns));
        let mut by_pass: Vec<(u64, u64)> = by_pass.collect();
        by_pass.dedup();
        let predicted = MedianMinMax::of(by_pass.into_iter().map(|(_, predicted)| predicted))?;
        let most = |of: fn(&Sample) -> u64| samples.iter().map(of).max().unwrap_or(0);
        Some(Figures {
            algorithm,
            tree: tree.to_owned(),
            predicted_ns: predicted.median,
            measured,
            goodput_bytes_per_s: bytes as f64 * 1e9 / measured.median as f64,
            collisions: most(|sample| sample.collisions),
            peak_buffered_flits: most(|sample| sample.peak_buffered_flits),
            slip: MedianMinMax::of(samples.iter().flat_map(|s| s.slips_ns.iter().copied())),
        })
    }

    /// Returns the difference of the prediction from the median, in percent of the median.
    pub fn error_pct(&self) -> f64 {
        error_pct(self.predicted_ns, self.measured.median)
    }

    /// Returns the range from the minimum to the 95th percentile, in percent of the median.
    pub fn spread_pct(&self) -> f64 {
        let it = self.measured;
        (it.p95 - it.min) as f64 / it.median as f64 * 100.0
    }
}
