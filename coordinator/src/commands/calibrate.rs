//! `flitcast calibrate`: measures the edges and the clocks of a cluster, then runs rounds on it,
//! learns the costs of its processes from their durations, and writes a profile.

mod args;
mod calibration;
mod ended;
mod fit;
mod learn;
mod report;
mod rounded;
mod steps;
mod this_host;
mod workloads;

pub use args::CalibrateArgs;
pub use ended::{calibrate_and_report, measure_host_and_report};
