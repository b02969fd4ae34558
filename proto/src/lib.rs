//! The protocol of Flitcast: everything that PEs must agree on and execute.
//!
//! [`tree`] contains the trees of PEs, [`schedule`] the times that PEs compute in a round, and [`ops`]
//! the state machine of a PE. [`items`] cross the edges, and [`wire`] encodes them for connections;
//! [`round`] is one PE's part of one round. Planners, the simulator and the prediction are in
//! `flitcast-plan`.
//!
//! Nothing here uses a socket, a clock, a task or randomness: time and seeds are passed in.

#![deny(clippy::disallowed_types, clippy::disallowed_methods)]

pub mod cost;
pub mod exchange;
mod files;
mod ids;
pub mod items;
mod limits;
pub mod names;
pub mod ops;
pub mod round;
pub mod schedule;
pub mod seeded;
pub mod shape;
pub mod spans;
pub mod streams;
pub mod tree;
pub mod wire;

pub use files::{Compression, Durability, Unkept, Update};
pub use ids::{DeliveryId, DeliveryName, MessageId, PeId, RoundId, Time};
pub use tree::Tree;
