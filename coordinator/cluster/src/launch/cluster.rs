//! A cluster of PEs: how it is launched, and its processes and channels until it stops.

mod conversation;
mod joining;
mod launching;
mod member;
mod plan;
mod process;
mod running;

pub use member::{Exit, LaunchError, PeEvent};
pub use plan::LaunchPlan;
pub use process::begin;
pub use running::Cluster;

#[cfg(test)]
mod tests;
