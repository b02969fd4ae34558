//! The algorithms of the operations by name, with the trees and sizes that each supports.

pub mod candidates;
pub mod listed;
pub mod method;

pub use flitcast_plan::algorithms::plan_limits;
