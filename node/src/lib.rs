//! Plays one PE over TCP: the only place that touches sockets, timers and files.
//!
//! [`run`] registers with the coordinator, connects to the neighbours and plays
//! rounds; [`join::join`] does so for a PE that nobody has started for this launch. It
//! asks the state machine of `flitcast-proto` what to do and moves the bytes; it knows
//! nothing of algorithms.
//!
//! ```no_run
//! use std::net::SocketAddr;
//!
//! use flitcast_node::allowed::Allowed;
//! use flitcast_node::limits::Timeouts;
//! use flitcast_node::security::Security;
//! use flitcast_node::{NodeConfig, Tally, run};
//! use flitcast_proto::PeId;
//! use flitcast_proto::wire::Secret;
//! use tokio::net::TcpListener;
//! use tokio_util::sync::CancellationToken;
//!
//! /// Plays P1 until the coordinator that has started this process says stop.
//! async fn play(
//!     coordinator: SocketAddr,
//!     cluster: u64,
//!     secret: Secret,
//! ) -> Result<(), Box<dyn std::error::Error>> {
//!     let (pe, security) = (PeId(1), Security::Plain);
//!     let config = NodeConfig {
//!         pe,
//!         coordinator,
//!         cluster,
//!         secret,
//!         allowed: Allowed::started(pe, &security, coordinator),
//!         security,
//!         timeouts: Timeouts::default(),
//!         tally: Tally::default(),
//!     };
//!     let children = TcpListener::bind((coordinator.ip(), 0)).await?;
//!     run(config, children, CancellationToken::new()).await?;
//!     Ok(())
//! }
//! ```

pub mod allowed;
mod blocking;
mod briefing;
pub mod channel;
mod config;
mod connect;
mod coordinator;
mod counters;
pub mod door;
mod error;
pub mod health;
mod held;
mod host;
mod inbox;
mod io;
pub mod join;
pub mod limits;
mod link;
mod listen;
pub mod lively;
mod neighbours;
mod pacer;
mod parts;
pub mod payload;
mod probe;
pub mod pulse;
mod readiness;
pub mod round;
pub mod rounds;
pub mod security;
mod session;
mod shape;
mod store;
pub mod system;
pub mod task;
mod text;

pub use config::NodeConfig;
pub use counters::Tally;
pub use error::NodeError;
pub use round::RoundError;
pub use session::run;
