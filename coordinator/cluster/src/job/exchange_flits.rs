//! The lengths of a planned exchange in flits: one length for all pairs, or a file with a row for each
//! PE.

use anyhow::{Context as _, bail, ensure};
use clap::Args;

use crate::algorithms::plan_limits::{MAX_FLITS, check_flits, check_pes};
use crate::files::matrix_file::{self, Cells};
use crate::site::topology::of_option;

/// The options that give the lengths of an exchange in flits.
#[derive(Clone, Debug, Args)]
pub struct ExchangeFlitsArgs {
    /// Flits from each PE to each other: each:F.
    #[arg(long, value_name = "each:F", conflicts_with = "matrix")]
    pub lengths: Option<String>,
    /// A file with a row for each sender and a column for each receiver, in flits; the diagonal is 0.
    #[arg(long, value_name = "FILE.csv")]
    pub matrix: Option<std::path::PathBuf>,
}

/// The lengths of all messages.
pub enum ExchangeFlits {
    /// This number of flits for each pair.
    Each(u64),
    /// A row for each sender.
    Matrix(Vec<Vec<u64>>),
}

impl ExchangeFlitsArgs {
    /// Reads the option or the file.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no option, or if the value or the file is invalid.
    pub fn read(&self) -> anyhow::Result<ExchangeFlits> {
        if let Some(path) = &self.matrix {
            let flits = Cells {
                unit: "flits",
                most: MAX_FLITS,
            };
            let rows = matrix_file::load(path, flits).map_err(of_option("--matrix"))?;
            return Ok(ExchangeFlits::Matrix(rows));
        }
        let Some(given) = &self.lengths else {
            bail!(
                "the lengths are missing: give --lengths each:F, F flits from every PE to every other, \
                 or --matrix FILE.csv"
            );
        };
        let number = given.strip_prefix("each:");
        // `parse` alone would also accept `+5`.
        let number = number.filter(|number| number.bytes().all(|b| b.is_ascii_digit()));
        let flits = number.and_then(|number| number.parse().ok());
        flits.map(ExchangeFlits::Each).with_context(|| {
            format!(
                "--lengths {given}: of an exchange write each:F, F flits from every PE to every other, a \
                 whole number; --matrix FILE.csv has a length for each"
            )
        })
    }
}

impl ExchangeFlits {
    /// Returns a row for each of `pes` PEs.
    ///
    /// # Errors
    ///
    /// Returns an error if the matrix is for another number of PEs, or if the exchange is too large to
    /// plan.
    pub fn of_pes(self, pes: usize) -> anyhow::Result<Vec<Vec<u64>>> {
        check_pes(pes)?;
        let (option, flits) = match self {
            ExchangeFlits::Each(flits) => {
                let mut rows = vec![vec![flits; pes]; pes];
                (0..pes).for_each(|pe| rows[pe][pe] = 0);
                ("--lengths", rows)
            }
            ExchangeFlits::Matrix(rows) => ("--matrix", rows),
        };
        let rows = flits.len();
        ensure!(
            rows == pes,
            "--matrix: {rows} rows and columns, but there are {pes} PEs"
        );
        check_flits(option, flits.iter().flatten())?;
        Ok(flits)
    }
}
