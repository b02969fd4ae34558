//! The threads of a coordinator.

use anyhow::Context as _;
use flitcast_node::system::process::survive_file_size_limit;

/// Creates the runtime of a coordinator: the main thread conducts rounds, and one worker thread
/// keeps the connections to the PEs alive during long computations.
pub fn conducting() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let survives = runtime.block_on(async { survive_file_size_limit() });
    survives.context("cannot listen to signals")?;
    Ok(runtime)
}
