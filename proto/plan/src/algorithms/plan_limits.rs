//! Limits of planning: numbers of PEs, flits, and crossings of edges that are planned one by one.

use thiserror::Error;

/// Maximum number of flits, so that every step number of a plan fits into 64 bits.
pub const MAX_FLITS: u64 = 1 << 40;
/// Maximum number of PEs of a gossip or an exchange. Each PE has a message for each other PE, so
/// this makes more than a million crossings.
pub const MOST_PES: usize = 1 << 10;
/// Maximum number of crossings of a gossip or an exchange that is planned one by one: some seconds
/// on any tree, and 300 MB.
pub const MOST_CROSSINGS: u64 = 1 << 21;
/// Maximum number of crossings of a gossip or an exchange over the edges of a tree that is planned in
/// blocks and predicted: a minute, and 1 GB.
pub const MOST_PREDICTED_CROSSINGS: u64 = 1 << 20;
/// Maximum number of crossings of a broadcast that is planned flit by flit.
pub const MOST_CROSSINGS_OF_ONE: u64 = 20_000_000;
/// Maximum number of hosts for which the rounds of an exchange are planned in a few seconds.
pub const MOST_HOSTS_OF_ROUNDS: usize = 512;

/// A request that is too large to plan, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct PlanTooLarge(String);

impl PlanTooLarge {
    /// Returns the error for a broadcast with this number of crossings, of at most `most`.
    pub fn size(crossings: u64, most: u64) -> PlanTooLarge {
        PlanTooLarge(format!(
            "--size: {crossings} flits to plan one by one are too many, the maximum is {most}"
        ))
    }
}

fn check(is_within: bool, fault: impl FnOnce() -> String) -> Result<(), PlanTooLarge> {
    match is_within {
        true => Ok(()),
        false => Err(PlanTooLarge(fault())),
    }
}

/// Checks the number of PEs, at most [`MOST_PES`], of an operation in which each PE has a message for each
/// other.
pub fn check_pes(pes: usize) -> Result<(), PlanTooLarge> {
    check(pes <= MOST_PES, || {
        format!("{pes} PEs are too many to plan this; the limit is {MOST_PES}")
    })
}

/// Returns the total of the lengths, which `option` defines: at most [`MAX_FLITS`].
pub fn check_flits<'a>(
    option: &'static str,
    lengths: impl IntoIterator<Item = &'a u64>,
) -> Result<u64, PlanTooLarge> {
    let lengths = lengths.into_iter();
    let flits = lengths.fold(0, |sum: u64, flits| sum.saturating_add(*flits));
    check(flits <= MAX_FLITS, || {
        format!("{option}: {flits} flits in all are too many, the maximum is {MAX_FLITS}")
    })?;
    Ok(flits)
}

/// Checks that this number of crossings, at most [`MOST_CROSSINGS`], can be planned one by one.
pub fn check_crossings(crossings: u64) -> Result<(), PlanTooLarge> {
    check(crossings <= MOST_CROSSINGS, || {
        format!(
            "{crossings} crossings of edges to plan one by one are too many, the maximum is \
             {MOST_CROSSINGS}"
        )
    })
}

/// Checks that a broadcast of `flits` flits to `pes` PEs can be planned flit by flit: it has at most
/// [`MOST_CROSSINGS_OF_ONE`] crossings.
pub fn check_size(flits: u64, pes: usize) -> Result<(), PlanTooLarge> {
    let crossings = flits.saturating_mul(pes as u64);
    let most = MOST_CROSSINGS_OF_ONE;
    match crossings > most {
        true => Err(PlanTooLarge::size(crossings, most)),
        false => Ok(()),
    }
}
