//! The number of flits of each message, where commands count steps and not bytes.

use flitcast_proto::Tree;
use thiserror::Error;

use crate::options::workload::{DealError, Lengths, LengthsError};
use crate::text::units::{UnitError, parse_bytes};

/// An error in `--lengths` given in flits.
#[derive(Debug, Error)]
pub enum FlitsError {
    /// The lengths cannot be parsed.
    #[error("--lengths: {0}")]
    Lengths(#[from] LengthsError),
    /// The lengths do not fit the tree.
    #[error("--lengths: {0}")]
    Deal(#[from] DealError),
    /// Bytes where flits are counted.
    #[error("--lengths {0}: a plan counts flits: write plain numbers, without a unit")]
    Unit(String),
    /// An invalid length in a list that has one for P0 as well.
    #[error("--lengths: the length of P{pe}: {error}")]
    Length {
        /// The PE of this length.
        pe: usize,
        /// The reason why the length is invalid.
        error: UnitError,
    },
}

/// Returns L_i by PE index; the root's is 0.
pub fn deal_flits(lengths: &Lengths, tree: &Tree) -> Result<Vec<u64>, FlitsError> {
    let mut dealt = lengths.deal(tree.len() - 1)?;
    dealt.insert(tree.root().index(), 0);
    Ok(dealt)
}

/// Returns L_i by PE index, where P0 has a message as well.
pub fn deal_flits_to_all(lengths: &Lengths, pes: usize) -> Result<Vec<u64>, FlitsError> {
    Ok(lengths.deal_to_all(pes)?)
}

/// Parses lengths as [`lengths_in_flits`] does, except that the first length of a list is P0's.
pub fn lengths_of_all_in_flits(text: &str) -> Result<Lengths, FlitsError> {
    lengths_in_flits(text).map_err(|fault| {
        let mut read = (0..).zip(text.split(',').map(parse_bytes));
        match fault {
            FlitsError::Lengths(LengthsError::Size { .. }) if !text.contains(':') => {
                let wrong = read.find_map(|(pe, length)| Some((pe, length.err()?)));
                wrong.map_or(fault, |(pe, error)| FlitsError::Length { pe, error })
            }
            _ => fault,
        }
    })
}

/// Parses lengths in flits: plain numbers.
pub fn lengths_in_flits(text: &str) -> Result<Lengths, FlitsError> {
    let amounts = text.split_once(':').map_or(text, |(_, amounts)| amounts);
    let lengths = text.parse::<Lengths>()?;
    match amounts.contains(|c: char| c.is_alphabetic()) {
        true => Err(FlitsError::Unit(text.to_owned())),
        false => Ok(lengths),
    }
}
