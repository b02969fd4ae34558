//! The commands: a module for each, with its arguments and its execution.

pub mod bench;
pub mod ca;
pub mod calibrate;
pub mod check;
pub mod compare;
#[cfg(feature = "packaging")]
pub mod manual;
pub mod map;
pub mod node;
pub mod plan;
pub mod running_cluster;
pub mod supervise;
pub mod timed;
pub mod transfer;
pub mod tree;
pub mod watch;
