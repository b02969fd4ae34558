//! The rows that a table of PEs shows.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use flitcast_cluster::text::screen::Detail;

/// Maximum number of PEs that a short table lists.
const SHORT_ROWS: usize = 16;

/// Returns all rows in their order, or without full detail, if there are many, the slowest and the largest
/// ones, and a line about the others. `figures` are the time and the size of a row.
pub fn notable<T, N: Ord, M: Ord>(
    all: &[T],
    detail: Detail,
    figures: impl Fn(&T) -> (N, M),
) -> (Vec<&T>, String) {
    // A line about one other PE would take as much room as its row.
    if detail == Detail::Full || all.len() <= SHORT_ROWS + 1 {
        return (all.iter().collect(), String::new());
    }
    let mut slowest: Vec<usize> = (0..all.len()).collect();
    slowest.sort_by_key(|at| Reverse(figures(&all[*at])));
    let mut largest = slowest.clone();
    largest.sort_by_key(|at| {
        let (time, size) = figures(&all[*at]);
        Reverse((size, time))
    });
    let mut chosen = BTreeSet::new();
    for at in slowest.into_iter().zip(largest).flat_map(<[_; 2]>::from) {
        if chosen.len() < SHORT_ROWS {
            chosen.insert(at);
        }
    }
    let others = all.len() - SHORT_ROWS;
    (
        chosen.into_iter().map(|at| &all[at]).collect(),
        format!("  and {others} others, neither slowest nor largest: -v lists all\n"),
    )
}
