//! The protocol of Flitcast: all that PEs must agree on, without sockets, clock or randomness.

mod ids;
pub mod seeded;
pub mod tree;
pub mod wire;

pub use ids::{PeId, RoundId, Time};
pub use tree::Tree;
