//! The threads of a coordinator.

use anyhow::Context as _;
use tokio::runtime::{Builder, Runtime};

/// Creates the runtime of a coordinator: the main thread conducts rounds, and one worker thread
/// keeps the connections to the PEs alive during long computations.
pub fn conducting() -> anyhow::Result<Runtime> {
    let runtime = flitcast_node::runtime::build(Builder::new_multi_thread().worker_threads(1));
    runtime.context("cannot start the runtime")
}
