//! Planning: the algorithms, with the schedules of all PEs, their bounds and their costs.
//!
//! [`algorithms`] contains the registry of algorithms and their planners; [`sim`] runs the state machines
//! of PEs in lock step under the papers' rules, and [`predict`] runs them on the links and hosts that
//! [`cost`] describes; [`on_links`] times a plan there without them. [`network`] finds the trees that span
//! any other network, [`gossip`] plans on some of these without a tree, and [`packets`] plans with a set-up
//! cost. [`calibration`] computes costs from measurements.
//!
//! Nothing here uses a socket, a clock, a task or randomness: time and seeds are passed in.
//!
//! P0 scatters four flits over a path of four PEs. It sends in every step, to the farthest PE first, so
//! that all have arrived when the last flit has left:
//!
//! ```
//! use std::sync::Arc;
//!
//! use flitcast_plan::Algorithm;
//! use flitcast_plan::sim;
//! use flitcast_proto::tree::TreeSpec;
//!
//! let tree = Arc::new("path:4".parse::<TreeSpec>()?.build()?);
//! let scattered = sim::run(&tree, Algorithm::FARTHEST_FIRST, &[0, 1, 2, 1])?;
//! assert_eq!(scattered.arrival_steps, [0, 4, 4, 3]);
//! assert_eq!(scattered.time_steps(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod algorithms;
pub mod baseline;
pub mod calibration;
pub mod cost;
pub mod fraction;
pub mod gossip;
pub mod network;
pub mod on_links;
pub mod packets;
pub mod predict;
pub mod schedule;
pub mod sim;
#[cfg(test)]
mod tests;
pub mod timing;
pub mod trace;

pub use algorithms::Algorithm;
