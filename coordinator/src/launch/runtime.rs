//! The threads of a coordinator.

use anyhow::Context as _;

/// Of the coordinator: one thread that conducts, and one that keeps the connections to the
/// PEs alive while the first works something out.
pub fn conducting() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(1)
        .enable_all()
        .build()
        .context("cannot start the runtime")
}
