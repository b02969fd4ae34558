//! Work that is done on blocking threads.

/// What a blocking task returned. It is never cancelled; if it panicked, so do we.
pub fn joined<T>(result: Result<T, tokio::task::JoinError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => unreachable!("a blocking task was cancelled: {error}"),
        },
    }
}
