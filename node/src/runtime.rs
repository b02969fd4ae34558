//! The threads of a process of Flitcast.

use std::io;
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::system::process::survive_file_size_limit;

/// Time for a disk to finish its writes at the end of a process.
const LAST_WRITES: Duration = Duration::from_secs(2);

/// Builds a runtime whose process survives the signal for a file that exceeds its size limit.
///
/// # Errors
///
/// Returns an error if the system gives no thread, descriptor or signal.
pub fn build(builder: &mut Builder) -> io::Result<Runtime> {
    let runtime = builder.enable_all().build()?;
    runtime.block_on(async { survive_file_size_limit() })?;
    Ok(runtime)
}

/// Runs all work of a process on one thread, so that a PE that answers pings cannot be stuck elsewhere.
///
/// # Errors
///
/// Returns an error if the runtime cannot be built.
pub fn run_alone<T>(work: impl Future<Output = T>) -> io::Result<T> {
    let runtime = build(&mut Builder::new_current_thread())?;
    let mut result = None;
    poll_to_end(&runtime, pin!(async { result = Some(work.await) }));
    runtime.shutdown_timeout(LAST_WRITES);
    Ok(result.expect("the work has ended"))
}

/// The loop that polls a PE and waits for the system. It has no type parameter, so that it is compiled
/// in this crate, as part of the hot path.
#[inline(never)]
fn poll_to_end(runtime: &Runtime, work: Pin<&mut dyn Future<Output = ()>>) {
    runtime.block_on(work);
}
