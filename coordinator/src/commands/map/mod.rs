//! `flitcast map`: scatters shards, runs a command on each, and gathers the results. These are three
//! runs, each on its own cluster, with a working folder between them.
//!
//! `retry` contains the scatter and the gather; the node crate contains the execution of a command.

mod args;
mod folders;
mod joblog;
mod moving;
mod order;
mod queue;
mod remaining;
mod report;
mod runs;
mod shards;
mod task;

pub use args::{Map, MapArgs};
pub use runs::run;
