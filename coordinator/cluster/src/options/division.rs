//! Options that divide one file into the messages of a scatter.

use clap::Args;

use crate::text::units::parse_bytes;

/// The division of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Division {
    /// Whether it is divided at the ends of lines.
    pub lines: bool,
    /// The number of bytes at whose multiples it is divided, if not at lines.
    pub block_bytes: u64,
    /// The number of parts; 0 for one for each PE.
    pub parts: u32,
}

/// Options that divide a file.
#[derive(Clone, Debug, Default, Args)]
pub struct DivisionArgs {
    /// Divide one input file at the ends of its lines: in parts of about equal length, one for each other PE.
    #[arg(long, conflicts_with_all = ["spread", "blocks"])]
    pub lines: bool,
    /// Divide one input file at multiples of this SIZE: that of a record.
    #[arg(long, value_name = "SIZE", conflicts_with = "spread")]
    pub blocks: Option<String>,
    /// Divide one input file into N equal parts: for P1 to PN; with --lines or --blocks, at their ends.
    #[arg(long, value_name = "N", conflicts_with = "spread", value_parser = parse_parts)]
    pub split: Option<u32>,
}

/// Parses `--split N`.
fn parse_parts(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) => Err("there is at least 1 part".to_owned()),
        Ok(parts) => Ok(parts),
        Err(_) => Err("it is not a number of parts".to_owned()),
    }
}

impl DivisionArgs {
    /// Returns whether an option divides a file.
    pub fn is_given(&self) -> bool {
        self.lines || self.blocks.is_some() || self.split.is_some()
    }

    /// Returns the division, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the length of a block is not a size, or zero.
    pub fn parsed(&self) -> anyhow::Result<Option<Division>> {
        let block_bytes = match &self.blocks {
            Some(blocks) => {
                let bytes = parse_bytes(blocks).map_err(|why| anyhow::anyhow!("--blocks {why}"))?;
                anyhow::ensure!(bytes > 0, "--blocks {blocks}: a block has at least a byte");
                bytes
            }
            None => u64::from(!self.lines),
        };
        Ok(self.is_given().then_some(Division {
            lines: self.lines,
            block_bytes,
            parts: self.split.unwrap_or(0),
        }))
    }
}
