//! Work that is divided over the processors.

use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};
use std::thread::{available_parallelism, scope};

use crate::limits::MOST_PROCESSORS;

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
