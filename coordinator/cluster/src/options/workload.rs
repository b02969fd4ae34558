//! The number of bytes of each message: the values of `--lengths` and `--size`.
//!
//! Only lengths are computed here; the source of a message makes its payload.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use flitcast_proto::seeded::SplitMix64;

use crate::options::names::typed;
use crate::text::phrases::counted;
use crate::text::units::{MAX_TOTAL_BYTES, parse_bytes};

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
    Uniform { low: u64, high: u64, seed: u64 },
}

/// How lengths differ from their mean. These are the patterns of the MPI program that serves as a
/// baseline, to the byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
pub enum Pattern {
    Equal,
    /// Rising evenly, M_i with 2i/(n+1) times the mean.
    Ramp,
    /// The last has 0.9 n times the mean, the others 0.1 times.
    OneBig,
    /// M_1, M_3 and so on have twice the mean, the others nothing.
    HalfNull,
}

impl Pattern {
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

const FORMS: &str = "write a list like 64KiB,0,3MiB, or equal:MEAN, ramp:MEAN, onebig:MEAN, \
                     halfnull:MEAN, uniform:LO..HI:SEED";

impl Lengths {
    /// Returns the lengths of `--size`: the same for all messages.
    pub fn of_size(bytes: u64) -> Self {
        Lengths::Dealt {
            pattern: Pattern::Equal,
            mean: bytes,
        }
    }

    /// Computes the bytes of M_1..M_n.
    ///
    /// # Errors
    ///
    /// Returns an error if a list has another number of lengths, or if their sum is too large.
    pub fn deal(&self, n: usize) -> Result<Vec<u64>, String> {
        self.deal_from(1, n)
    }

    /// Computes the bytes of M_0..M_n as [`Lengths::deal`] does, where P0 has a message as well.
    pub fn deal_to_all(&self, pes: usize) -> Result<Vec<u64>, String> {
        self.deal_from(0, pes)
    }

    /// Computes the bytes of `n` messages, of which the first is that of the PE `first`.
    fn deal_from(&self, first: usize, n: usize) -> Result<Vec<u64>, String> {
        let lengths: Vec<u64> = match self {
            Lengths::List(list) if list.len() != n => {
                return Err(format!(
                    "{} given, but {n} needed: one for each PE from P{first} to P{} (for the same length \
                     everywhere, write equal:LENGTH)",
                    counted(list.len() as u64, "length is", "lengths are"),
                    first + n - 1
                ));
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
        check_total(&lengths)?;
        Ok(lengths)
    }

    /// Returns whether a text is a list, unless it is blank: neither a pattern nor a name.
    pub fn is_list(text: &str) -> bool {
        let is_name = text.trim_start().starts_with(|c: char| c.is_alphabetic());
        !text.contains(':') && !is_name
    }
}

/// Returns an error if the sum of all lengths is too large.
pub fn check_total(lengths: &[u64]) -> Result<(), String> {
    let total: u128 = lengths.iter().map(|&bytes| u128::from(bytes)).sum();
    match total > u128::from(MAX_TOTAL_BYTES) {
        true => Err(format!(
            "the lengths add up to {total}, more than the {MAX_TOTAL_BYTES} allowed; ask for less"
        )),
        false => Ok(()),
    }
}

impl FromStr for Lengths {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err(format!("no lengths are given; {FORMS}"));
        }
        let size = |given: &str, place: &str| {
            parse_bytes(given).map_err(|fault| format!("{place}: {fault}"))
        };
        let unknown = |given: &str| format!("`{given}` is neither a size nor a pattern; {FORMS}");
        match text.split_once(':') {
            Some(("uniform", rest)) => {
                let form = || {
                    format!(
                        "`{text}` does not have the form uniform:LO..HI:SEED, like uniform:0..1MiB:7"
                    )
                };
                let (range, seed) = rest.split_once(':').ok_or_else(form)?;
                let (low, high) = range.split_once("..").ok_or_else(form)?;
                let seed = seed.parse().map_err(|_| form())?;
                let low = size(low, "the least length")?;
                let high = size(high, "the greatest length")?;
                match low > high {
                    true => Err(format!(
                        "uniform: the least length, {low} bytes, is more than the greatest, {high} bytes"
                    )),
                    false => Ok(Lengths::Uniform { low, high, seed }),
                }
            }
            Some((name, mean)) => {
                let pattern = Pattern::from_str(name, false).map_err(|_| unknown(name))?;
                let mean = size(mean, "the mean length")?;
                Ok(Lengths::Dealt { pattern, mean })
            }
            None if !Lengths::is_list(text) => Err(unknown(text)),
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
                let texts: Vec<String> = list.iter().map(u64::to_string).collect();
                f.write_str(&texts.join(","))
            }
            Lengths::Dealt { pattern, mean } => write!(f, "{}:{mean}", typed(pattern)),
            Lengths::Uniform { low, high, seed } => write!(f, "uniform:{low}..{high}:{seed}"),
        }
    }
}

#[cfg(test)]
mod tests;
