//! How many flits each message has, where steps are counted and not bytes.

use flitcast_proto::Tree;
use thiserror::Error;

use crate::options::workload::{DealError, Lengths, LengthsError};

/// What is wrong with `--lengths` in flits.
#[derive(Debug, Error)]
pub enum FlitsError {
    /// The lengths are none.
    #[error("--lengths: {0}")]
    Lengths(#[from] LengthsError),
    /// The lengths do not fit the tree.
    #[error("--lengths: {0}")]
    Deal(#[from] DealError),
    /// Bytes where flits are counted.
    #[error("--lengths {0}: a plan counts flits: write plain numbers, without a unit")]
    Unit(String),
}

/// L_i by PE index; the root's is 0.
pub fn deal_flits(lengths: &Lengths, tree: &Tree) -> Result<Vec<u64>, FlitsError> {
    let mut dealt = lengths.deal(tree.len() - 1)?;
    dealt.insert(tree.root().index(), 0);
    Ok(dealt)
}

/// Lengths in flits: plain numbers.
pub fn lengths_in_flits(text: &str) -> Result<Lengths, FlitsError> {
    let amounts = text.split_once(':').map_or(text, |(_, amounts)| amounts);
    let lengths = text.parse::<Lengths>()?;
    match amounts.contains(|c: char| c.is_alphabetic()) {
        true => Err(FlitsError::Unit(text.to_owned())),
        false => Ok(lengths),
    }
}
