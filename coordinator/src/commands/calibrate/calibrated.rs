//! The result of a calibration.

use std::path::PathBuf;
use std::time::Duration;

use crate::files::profile::Profile;
use crate::site::guard::Guard;

/// The result of a calibration.
#[derive(Debug)]
pub struct Calibrated {
    /// The profile.
    pub profile: Profile,
    /// Workloads that were run.
    pub workloads: Vec<Ran>,
    /// Names of the workloads that were not run because time was short.
    pub left_out: Vec<String>,
    /// Announced duration.
    pub announced: Duration,
    /// Actual duration.
    pub took: Duration,
    /// Security of connections.
    pub guard: Guard,
    /// Path of the written profile.
    pub written: Option<PathBuf>,
}

/// One workload of a calibration.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Name, such as `gather equal:1031`.
    pub name: String,
    /// Number of rounds.
    pub rounds: u64,
    /// Median of the measured durations.
    pub measured_ns: u64,
    /// Predicted duration with the fitted costs.
    pub predicted_ns: u64,
    /// Error of the prediction, in percent.
    pub error_pct: f64,
}
