//! `flitcast plan`: what will happen, step by step, from the schedule that a real
//! run uses, without a network.

mod args;
mod broadcast;
mod command;
mod json;
mod static_plan;
mod svg;

pub use args::PlanArgs;
pub use command::run;
