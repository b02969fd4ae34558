//! The ways to do an operation, by name, and what each of them is good for.

pub mod baseline;
pub mod broadcast_plans;
pub mod candidates;
pub mod plan_limits;
pub mod tree_plans;
pub mod way;
