//! Work that is done on blocking threads.

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
