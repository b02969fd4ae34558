//! The lengths of a planned exchange in flits: one length for all pairs, or a file with a row for each
//! PE.

use clap::Args;
use thiserror::Error;

use crate::algorithms::plan_limits::{MAX_FLITS, PlanTooLarge, check_flits, check_pes};
use crate::files::matrix_file::{self, Cells};
use crate::files::user_file::FileError;

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

/// An error in the lengths of an exchange.
#[derive(Debug, Error)]
pub enum ExchangeFlitsError {
    /// No option gives the lengths.
    #[error(
        "the lengths are missing: give --lengths each:F, F flits from every PE to every other, or --matrix FILE.csv"
    )]
    NothingToExchange,
    /// A list or pattern of lengths instead of one length.
    #[error(
        "--lengths {given}: of an exchange write each:F, F flits from every PE to every other, a \
         whole number; --matrix FILE.csv has a length for each"
    )]
    NotEach {
        /// The value as typed.
        given: String,
    },
    /// The matrix cannot be read.
    #[error("--matrix: {0}")]
    Matrix(#[from] FileError),
    /// The matrix is for another number of PEs.
    #[error("--matrix: {rows} rows and columns, but there are {pes} PEs")]
    MatrixOfOthers {
        /// The number of rows.
        rows: usize,
        /// The number of PEs.
        pes: usize,
    },
    /// More than can be planned.
    #[error(transparent)]
    TooMuch(#[from] PlanTooLarge),
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
    pub fn read(&self) -> Result<ExchangeFlits, ExchangeFlitsError> {
        if let Some(path) = &self.matrix {
            let flits = Cells {
                unit: "flits",
                most: MAX_FLITS,
            };
            return Ok(ExchangeFlits::Matrix(matrix_file::load(path, flits)?));
        }
        let Some(given) = &self.lengths else {
            return Err(ExchangeFlitsError::NothingToExchange);
        };
        let number = given.strip_prefix("each:");
        // `parse` alone would also accept `+5`.
        let number = number.filter(|number| number.bytes().all(|b| b.is_ascii_digit()));
        let flits = number.and_then(|number| number.parse().ok());
        let not_each = || ExchangeFlitsError::NotEach {
            given: given.clone(),
        };
        flits.map(ExchangeFlits::Each).ok_or_else(not_each)
    }
}

impl ExchangeFlits {
    /// Returns a row for each of `pes` PEs.
    ///
    /// # Errors
    ///
    /// Returns an error if the matrix is for another number of PEs, or if the exchange is too large to
    /// plan.
    pub fn of_pes(self, pes: usize) -> Result<Vec<Vec<u64>>, ExchangeFlitsError> {
        check_pes(pes)?;
        let (option, flits) = match self {
            ExchangeFlits::Each(flits) => {
                let row = |from| (0..pes).map(move |to| if from == to { 0 } else { flits });
                (
                    "--lengths",
                    (0..pes).map(|from| row(from).collect()).collect(),
                )
            }
            ExchangeFlits::Matrix(rows) if rows.len() != pes => {
                let rows = rows.len();
                return Err(ExchangeFlitsError::MatrixOfOthers { rows, pes });
            }
            ExchangeFlits::Matrix(rows) => ("--matrix", rows),
        };
        check_flits(option, flits.iter().flatten())?;
        Ok(flits)
    }
}
