//! The costs of processes on each machine: measured when a command first uses the machine (by a
//! separate process of a PE there, `flitcast calibrate --host`), stored in a cache, and corrected after
//! every round.
//!
//! `flitcast_plan::calibration::cost_estimate` contains the filter that learns.

mod assumed;
mod cache;
pub mod files;
mod known;
mod source;

pub use assumed::prior;
pub use cache::Key;
pub use known::{
    HostCosts, comparable_arrivals, expected, geometric_mean, host_here, is_here, keep_measured,
    known, learn, take_measured,
};
pub use source::CostSource;
