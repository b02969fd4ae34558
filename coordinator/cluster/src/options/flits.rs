//! The number of flits of each message, where commands count steps and not bytes.

use anyhow::anyhow;
use flitcast_proto::Tree;

use crate::options::workload::Lengths;
use crate::text::units::parse_bytes;

fn invalid(fault: String) -> anyhow::Error {
    anyhow!("--lengths: {fault}")
}

/// Returns L_i by PE index; the root's is 0.
pub fn deal_flits(lengths: &Lengths, tree: &Tree) -> anyhow::Result<Vec<u64>> {
    let mut dealt = lengths.deal(tree.len() - 1).map_err(invalid)?;
    dealt.insert(tree.root().index(), 0);
    Ok(dealt)
}

/// Returns L_i by PE index, where P0 has a message as well.
pub fn deal_flits_to_all(lengths: &Lengths, pes: usize) -> anyhow::Result<Vec<u64>> {
    lengths.deal_to_all(pes).map_err(invalid)
}

/// Parses lengths as [`lengths_in_flits`] does, except that the first length of a list is P0's.
pub fn lengths_of_all_in_flits(text: &str) -> anyhow::Result<Lengths> {
    lengths_in_flits(text).map_err(|fault| {
        let mut read = (0..).zip(text.split(',').map(parse_bytes));
        match read.find_map(|(pe, length)| Some((pe, length.err()?))) {
            Some((pe, error)) if Lengths::is_list(text) => {
                invalid(format!("the length of P{pe}: {error}"))
            }
            _ => fault,
        }
    })
}

/// Parses lengths in flits: plain numbers.
pub fn lengths_in_flits(text: &str) -> anyhow::Result<Lengths> {
    let amounts = text.split_once(':').map_or(text, |(_, amounts)| amounts);
    let lengths = text.parse::<Lengths>().map_err(invalid)?;
    match amounts.contains(|c: char| c.is_alphabetic()) {
        true => Err(anyhow!(
            "--lengths {text}: a plan counts flits: write plain numbers, without a unit"
        )),
        false => Ok(lengths),
    }
}
