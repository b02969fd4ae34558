//! A cluster of PEs: how it is launched, and its processes and channels until it stops.

mod conversation;
mod error;
mod exit;
mod greeting;
mod joining;
mod launching;
mod member;
mod plan;
mod process;
mod running;

pub use error::LaunchError;
pub use exit::Exit;
pub use member::PeEvent;
pub use plan::LaunchPlan;
pub use process::begin;
pub use running::Cluster;

#[cfg(test)]
mod tests;
