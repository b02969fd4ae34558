//! The number of bytes of each message: the values of `--lengths` and `--size`.
//!
//! Only lengths are computed here; the source of a message makes its payload.

use std::fmt;
use std::str::FromStr;

use flitcast_proto::seeded::SplitMix64;

use crate::text::units::{MAX_TOTAL_BYTES, UnitError, parse_bytes};

/// The lengths of M_1..M_n, before `n` is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// `64KiB,0,3MiB`: one by one.
    List(Vec<u64>),
    /// `PATTERN:MEAN`.
    Dealt {
        /// How they differ.
        pattern: Pattern,
        /// The mean length in bytes (for some patterns and numbers of messages,
        /// only nearly).
        mean: u64,
    },
    /// `uniform:LO..HI:SEED`: drawn with [`SplitMix64`], M_1 first, uniformly
    /// from LO to HI, both included.
    Uniform {
        /// LO.
        low: u64,
        /// HI.
        high: u64,
        /// SEED.
        seed: u64,
    },
}

/// How lengths differ from their mean. These are the patterns of the MPI program that serves as a
/// baseline, to the byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// All have the mean length.
    Equal,
    /// Rising evenly, M_i with 2i/(n+1) times the mean.
    Ramp,
    /// The last has 0.9 n times the mean, the others 0.1 times.
    OneBig,
    /// M_1, M_3 and so on have twice the mean, the others nothing.
    HalfNull,
}

impl Pattern {
    const ALL: [(Pattern, &str); 4] = [
        (Pattern::Equal, "equal"),
        (Pattern::Ramp, "ramp"),
        (Pattern::OneBig, "onebig"),
        (Pattern::HalfNull, "halfnull"),
    ];

    fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(p, _)| *p == self)
            .map_or("", |(_, name)| name)
    }

    /// Returns the length of M_i, i = 1..n.
    ///
    /// The MPI program computes `mean * f` in doubles and truncates. Now and then that is one byte
    /// short of the true quotient (for M_102 of 124 and a mean of 10000 it gives 16319, not 16320), so
    /// integers would give other lengths. Rust's `f64` is the same IEEE type, so the same expression is
    /// used; only means that a double cannot hold (above 2^53) lose digits by it.
    fn length(self, i: usize, n: usize, mean: u64) -> u64 {
        let ranks = (n + 1) as f64;
        match self {
            Pattern::Equal => mean,
            Pattern::Ramp => (mean as f64 * (2.0 * i as f64 / ranks)) as u64,
            Pattern::OneBig if i == n => (mean as f64 * (n as f64 * 0.9)) as u64,
            Pattern::OneBig => (mean as f64 * 0.1) as u64,
            // Saturates; the total is refused afterwards.
            Pattern::HalfNull if i % 2 == 1 => mean.saturating_mul(2),
            Pattern::HalfNull => 0,
        }
    }
}

/// An error in the description of lengths.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LengthsError {
    /// Nothing but blanks.
    #[error("no lengths are given; {FORMS}")]
    Empty,
    /// Neither a size nor a pattern's name.
    #[error("`{given}` is neither a size nor a pattern; {FORMS}")]
    UnknownPattern {
        /// The text in its place.
        given: String,
    },
    /// Not LO..HI:SEED behind `uniform:`.
    #[error("`{given}` does not have the form uniform:LO..HI:SEED, like uniform:0..1MiB:7")]
    UniformForm {
        /// The whole text.
        given: String,
    },
    /// LO is more than HI.
    #[error("uniform: the least length, {low} bytes, is more than the greatest, {high} bytes")]
    EmptyRange {
        /// LO.
        low: u64,
        /// HI.
        high: u64,
    },
    /// An invalid size, and its place.
    #[error("{place}: {error}")]
    Size {
        /// Like `the mean length`.
        place: String,
        /// The reason why it is invalid.
        error: UnitError,
    },
}

const FORMS: &str = "write a list like 64KiB,0,3MiB, or equal:MEAN, ramp:MEAN, onebig:MEAN, \
                     halfnull:MEAN, uniform:LO..HI:SEED";

/// A reason why lengths do not fit a tree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DealError {
    /// A list with too few or too many entries.
    #[error(
        "{given} length(s) given, but {needed} needed: one for each PE from P1 to P{needed} \
         (for the same length everywhere, write equal:LENGTH)"
    )]
    WrongCount {
        /// The number of lengths in the list.
        given: usize,
        /// The number of lengths needed.
        needed: usize,
    },
    /// A list with too few or too many entries, where P0 has a message as well.
    #[error(
        "{given} length(s) given, but {pes} needed: one for each PE from P0 to P{} \
         (for the same length everywhere, write equal:LENGTH)",
        pes - 1
    )]
    WrongCountOfAll {
        /// The number of lengths in the list.
        given: usize,
        /// The number of PEs.
        pes: usize,
    },
    /// The sum of all lengths is too large.
    #[error("the lengths add up to {total}, more than the {MAX_TOTAL_BYTES} allowed; ask for less")]
    TotalTooLarge {
        /// The sum.
        total: u128,
    },
}

impl Lengths {
    /// Returns the lengths of `--size`: the same for all messages.
    pub fn of_size(bytes: u64) -> Self {
        Lengths::Dealt {
            pattern: Pattern::Equal,
            mean: bytes,
        }
    }

    /// Computes the bytes of M_1..M_n.
    pub fn deal(&self, n: usize) -> Result<Vec<u64>, DealError> {
        let lengths: Vec<u64> = match self {
            Lengths::List(list) if list.len() != n => {
                return Err(DealError::WrongCount {
                    given: list.len(),
                    needed: n,
                });
            }
            Lengths::List(list) => list.clone(),
            Lengths::Dealt { pattern, mean } => {
                (1..=n).map(|i| pattern.length(i, n, *mean)).collect()
            }
            Lengths::Uniform { low, high, seed } => {
                let mut rng = SplitMix64::new(*seed);
                let draw = || match high.saturating_sub(*low).checked_add(1) {
                    Some(choices) => low + rng.below(choices),
                    None => rng.next_u64(), // 0..2^64-1
                };
                std::iter::repeat_with(draw).take(n).collect()
            }
        };
        let total = lengths.iter().map(|&l| u128::from(l)).sum();
        if total > u128::from(MAX_TOTAL_BYTES) {
            return Err(DealError::TotalTooLarge { total });
        }
        Ok(lengths)
    }

    /// Computes the bytes of M_0..M_n, where P0 has a message as well.
    pub fn deal_to_all(&self, pes: usize) -> Result<Vec<u64>, DealError> {
        self.deal(pes).map_err(|fault| match fault {
            DealError::WrongCount { given, .. } => DealError::WrongCountOfAll { given, pes },
            other => other,
        })
    }
}

impl FromStr for Lengths {
    type Err = LengthsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim().is_empty() {
            return Err(LengthsError::Empty);
        }
        let size = |given: &str, place: &str| {
            parse_bytes(given).map_err(|error| LengthsError::Size {
                place: place.to_owned(),
                error,
            })
        };
        let unknown = |given: &str| LengthsError::UnknownPattern {
            given: given.to_owned(),
        };
        match text.split_once(':') {
            Some(("uniform", rest)) => {
                let form = || LengthsError::UniformForm {
                    given: text.to_owned(),
                };
                let (range, seed) = rest.split_once(':').ok_or_else(form)?;
                let (low, high) = range.split_once("..").ok_or_else(form)?;
                let seed = seed.parse().map_err(|_| form())?;
                let low = size(low, "the least length")?;
                let high = size(high, "the greatest length")?;
                if low > high {
                    return Err(LengthsError::EmptyRange { low, high });
                }
                Ok(Lengths::Uniform { low, high, seed })
            }
            Some((name, mean)) => {
                let known = Pattern::ALL.iter().find(|(_, known)| *known == name);
                let &(pattern, _) = known.ok_or_else(|| unknown(name))?;
                let mean = size(mean, "the mean length")?;
                Ok(Lengths::Dealt { pattern, mean })
            }
            None if text.trim_start().starts_with(|c: char| c.is_alphabetic()) => {
                Err(unknown(text))
            }
            None => {
                // The operation and its root determine the PE of each length.
                let entry = |(i, given)| size(given, &format!("length {i} of the list"));
                let list: Result<_, _> = (1..).zip(text.split(',')).map(entry).collect();
                list.map(Lengths::List)
            }
        }
    }
}

/// Writes a text that parses to the same lengths.
impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lengths::List(list) => {
                for (i, bytes) in list.iter().enumerate() {
                    write!(f, "{}{bytes}", if i == 0 { "" } else { "," })?;
                }
                Ok(())
            }
            Lengths::Dealt { pattern, mean } => write!(f, "{}:{mean}", pattern.name()),
            Lengths::Uniform { low, high, seed } => write!(f, "uniform:{low}..{high}:{seed}"),
        }
    }
}

#[cfg(test)]
mod tests;
