//! The algorithms of the operations by name, with the trees and sizes that each supports.

pub mod baseline;
pub mod broadcast_plans;
pub mod candidates;
pub mod method;
pub mod plan_limits;
pub mod tree_gossip;
pub mod tree_plans;
pub mod unfit;
