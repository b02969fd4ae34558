//! The threads of a coordinator, and those of a PE.

use anyhow::Context as _;
use flitcast_node::system::process::survive_file_size_limit;
use tokio::runtime::{Builder, Runtime};

/// Creates the runtime of a coordinator: the main thread conducts rounds, and one worker thread
/// keeps the connections to the PEs alive during long computations.
pub fn conducting() -> anyhow::Result<Runtime> {
    created(Builder::new_multi_thread().worker_threads(1))
}

/// Creates a runtime with one thread, so that a PE that answers pings cannot be stuck elsewhere.
pub fn playing() -> anyhow::Result<Runtime> {
    created(&mut Builder::new_current_thread())
}

fn created(builder: &mut Builder) -> anyhow::Result<Runtime> {
    let runtime = builder.enable_all().build();
    let runtime = runtime.context("cannot start the runtime")?;
    let survives = runtime.block_on(async { survive_file_size_limit() });
    survives.context("cannot listen to signals")?;
    Ok(runtime)
}
