//! Runs one PE over TCP: the only crate with sockets, timers and files.
//!
//! [`run`] registers with the coordinator, connects to the neighbours and runs rounds; [`join::join`]
//! does so for a PE that the coordinator has not started. The state machine of `flitcast-proto` decides
//! each action, and this crate moves the bytes; it does not depend on algorithms.

pub mod activity_monitor;
pub mod channel;
mod config;
mod connect;
mod coordinator;
mod counters;
pub mod dates;
mod error;
pub mod handshake_limiter;
pub mod health;
pub mod held;
mod host;
mod inbox;
mod inputs;
mod io;
pub mod join;
pub mod limits;
mod link;
mod listen;
mod neighbours;
mod pacer;
mod packing;
pub mod parts;
pub mod payload;
pub mod permissions;
mod probe;
mod readiness;
pub mod round;
pub mod rounds;
pub mod runtime;
mod schedule_check;
pub mod security;
mod session;
mod shape;
mod store;
pub mod system;
pub mod task;
pub mod timeout_stream;
pub mod tuning;

pub use config::NodeConfig;
pub use counters::Tally;
pub use error::NodeError;
pub use round::RoundError;
pub use runtime::on_processors;
pub use session::run;
