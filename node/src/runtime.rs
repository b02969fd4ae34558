//! The threads of a process of Flitcast.

use std::io;
use std::panic::resume_unwind;
use std::pin::{Pin, pin};
use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, scope};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::limits::MOST_PROCESSORS;
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

/// Returns the result of a blocking task, which is never cancelled. If the task panicked, this panics
/// with the same payload.
pub fn joined<T>(result: Result<T, tokio::task::JoinError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => unreachable!("a blocking task was cancelled: {error}"),
        },
    }
}

/// Returns the result of `work` for each item, in their order. Items are worked on side by side, one on
/// each processor.
pub fn on_processors<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let processors = available_parallelism().map_or(1, usize::from);
    let threads = processors.min(items.len()).min(MOST_PROCESSORS);
    if threads < 2 {
        return items.into_iter().map(work).collect();
    }
    let rest = Mutex::new(items.into_iter().enumerate());
    let next = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    let worker = || {
        let mut results = Vec::new();
        while let Some((nth, item)) = next() {
            results.push((nth, work(item)));
        }
        results
    };
    let mut results: Vec<(usize, R)> = scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let results = threads.into_iter().map(|thread| thread.join());
        results
            .flat_map(|found| found.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    results.sort_by_key(|(nth, _)| *nth);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_items() {
        for items in [0, 1, 2, 1000] {
            let squares = on_processors((0..items).collect(), |item: usize| item * item);
            assert_eq!(
                squares,
                (0..items).map(|item| item * item).collect::<Vec<_>>()
            );
        }
    }
}
