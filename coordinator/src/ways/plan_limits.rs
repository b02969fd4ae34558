//! How much can be planned before anything runs: PEs, flits, and crossings of edges that are worked out
//! one by one.

use thiserror::Error;

/// So long that no step of a plan is beyond what can be counted.
pub const MAX_FLITS: u64 = 1 << 40;
/// PEs of a gossip or an exchange: each has something for each other, which is more than a million
/// crossings.
pub const MOST_PES: usize = 1 << 10;
/// Crossings that such a plan may have if it is worked out one by one: some seconds on any tree, and
/// 200 MB.
pub const MOST_CROSSINGS: u64 = 1 << 21;
/// Crossings that a plan of a broadcast may have which is worked out flit by flit.
pub const MOST_CROSSINGS_OF_ONE: u64 = 20_000_000;
/// Hosts whose rounds of an exchange are worked out in a few seconds.
pub const MOST_HOSTS_OF_ROUNDS: usize = 512;

/// More than can be planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TooMuch {
    /// A broadcast that is worked out flit by flit.
    #[error(
        "--size: {crossings} flits to plan one by one are too many, at most {most} are planned so"
    )]
    Size {
        /// How many.
        crossings: u64,
        /// How many there may be.
        most: u64,
    },
    /// A gossip or an exchange that is worked out flit by flit.
    #[error(
        "{crossings} crossings of edges to plan one by one are too many, at most {MOST_CROSSINGS} \
         are planned so"
    )]
    Crossings {
        /// How many.
        crossings: u64,
    },
    /// Among so many PEs, even one flit each is too much.
    #[error("{pes} PEs are too many to plan this for, at most {MOST_PES} are")]
    Pes {
        /// How many.
        pes: usize,
    },
    /// More flits than steps can be counted of.
    #[error("{option}: {flits} flits in all are too many, at most {MAX_FLITS} are planned")]
    Flits {
        /// What says so.
        option: &'static str,
        /// How many.
        flits: u64,
    },
}

/// That so many PEs are not too many where each has something for each other.
///
/// # Errors
///
/// That they are.
pub fn check_pes(pes: usize) -> Result<(), TooMuch> {
    match pes > MOST_PES {
        true => Err(TooMuch::Pes { pes }),
        false => Ok(()),
    }
}

/// That messages of such lengths, which this option gives, are not too long together; and how long
/// they are.
///
/// # Errors
///
/// That they are.
pub fn check_flits<'a>(
    option: &'static str,
    lengths: impl IntoIterator<Item = &'a u64>,
) -> Result<u64, TooMuch> {
    let lengths = lengths.into_iter();
    let flits = lengths.fold(0, |sum: u64, flits| sum.saturating_add(*flits));
    match flits > MAX_FLITS {
        true => Err(TooMuch::Flits { option, flits }),
        false => Ok(flits),
    }
}

/// That so many crossings can be worked out one by one.
///
/// # Errors
///
/// That they are too many.
pub fn check_crossings(crossings: u64) -> Result<(), TooMuch> {
    match crossings > MOST_CROSSINGS {
        true => Err(TooMuch::Crossings { crossings }),
        false => Ok(()),
    }
}

/// That so many flits of a broadcast to so many PEs can be worked out one by one.
///
/// # Errors
///
/// That they are too many.
pub fn check_size(flits: u64, pes: usize) -> Result<(), TooMuch> {
    let crossings = flits.saturating_mul(pes as u64);
    let most = MOST_CROSSINGS_OF_ONE;
    match crossings > most {
        true => Err(TooMuch::Size { crossings, most }),
        false => Ok(()),
    }
}
