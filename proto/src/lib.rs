//! The protocol of Flitcast: everything that PEs must agree on.
//!
//! Three layers: [`tree`] contains the trees of PEs, [`schedule`] the times and the messages of each
//! transmission, and [`ops`] the state machines of a PE. [`items`] cross the edges, and [`wire`]
//! encodes them for connections. [`sim`] runs the machines in lock step under the papers' rules, and
//! [`predict`] runs them on the links and hosts that [`cost`] describes; [`on_links`] times a plan there
//! without them. [`network`] finds the trees
//! that span any other network, and [`gossip`] plans on some of these without a tree.
//!
//! Nothing here uses a socket, a clock, a task or randomness: time and seeds are passed in.
//!
//! P0 scatters four flits over a path of four PEs. It sends in every step, to the farthest PE first, so
//! that all have arrived when the last flit has left:
//!
//! ```
//! use std::sync::Arc;
//!
//! use flitcast_proto::ops::Algorithm;
//! use flitcast_proto::sim;
//! use flitcast_proto::tree::TreeSpec;
//!
//! let tree = Arc::new("path:4".parse::<TreeSpec>()?.build()?);
//! let scattered = sim::run(&tree, Algorithm::Scatter, &[0, 1, 2, 1])?;
//! assert_eq!(scattered.arrival_steps, [0, 4, 4, 3]);
//! assert_eq!(scattered.time_steps(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod baseline;
pub mod calibration;
pub mod cost;
pub mod fraction;
pub mod gossip;
mod ids;
pub mod items;
mod limits;
mod names;
pub mod network;
pub mod on_links;
pub mod ops;
pub mod packets;
pub mod predict;
pub mod round;
pub mod schedule;
pub mod seeded;
pub mod shape;
pub mod sim;
pub mod spans;
pub mod streams;
pub mod trace;
pub mod tree;
pub mod wire;

pub use ids::{DeliveryId, DeliveryName, MessageId, PeId, RoundId, Time};
pub use tree::Tree;
