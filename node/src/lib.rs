//! Plays one PE over TCP: the only place that touches sockets, timers and files.
//!
//! [`run`] registers with the coordinator, connects to the neighbours and plays
//! rounds; [`join::join`] does so for a PE that nobody has started for this launch. It asks the state machine of `flitcast-proto` what to do and moves the
//! bytes; it knows nothing of algorithms.

pub mod allowed;
mod briefing;
pub mod channel;
mod clock;
mod connect;
mod coordinator;
mod counters;
pub mod descriptors;
pub mod door;
pub mod health;
mod inbox;
pub mod join;
pub mod limits;
mod link;
pub mod lively;
mod neighbours;
pub mod payload;
mod probe;
mod process;
pub mod pulse;
mod recorder;
mod retransmissions;
mod round;
pub mod security;
mod session;
mod shape;
mod store;
pub mod task;

pub use counters::Tally;
pub use round::{RoundError, blank_report};
pub use session::{NodeConfig, NodeError, run};

/// What a peer said, short enough for an error message.
fn clipped(what: &dyn std::fmt::Debug) -> String {
    const LONGEST: usize = 160;
    format!("{what:?}").chars().take(LONGEST).collect()
}
