//! What every PE has for every other in an exchange, in flits: the same for all, or a file with a row
//! for each.

use clap::Args;
use thiserror::Error;

use crate::files::matrix_file::{self, Cells};
use crate::files::user_file::FileError;
use crate::ways::plan_limits::{MAX_FLITS, TooMuch, check_flits, check_pes};

/// What is exchanged, as it is typed.
#[derive(Clone, Debug, Args)]
pub struct ExchangeFlitsArgs {
    /// Flits from each PE to each other: each:F.
    #[arg(long, value_name = "each:F", conflicts_with = "matrix")]
    pub lengths: Option<String>,
    /// A file with a row for each PE: what it has for each, in flits; its own is 0.
    #[arg(long, value_name = "FILE.csv")]
    pub matrix: Option<std::path::PathBuf>,
}

/// What is wrong with it.
#[derive(Debug, Error)]
pub enum ExchangeFlitsError {
    /// Nothing says what an exchange exchanges.
    #[error(
        "say what every PE has for every other: --lengths each:F, F flits, or --matrix FILE.csv"
    )]
    NothingToExchange,
    /// Not the same length for all.
    #[error(
        "--lengths {given}: of an exchange write each:F, F flits from every PE to every other, a \
         whole number; --matrix FILE.csv has a length for each"
    )]
    NotEach {
        /// As typed.
        given: String,
    },
    /// The matrix is none.
    #[error("--matrix: {0}")]
    Matrix(#[from] FileError),
    /// The matrix is not for so many PEs.
    #[error("--matrix: {rows} rows and columns, but there are {pes} PEs")]
    MatrixOfOthers {
        /// How many rows there are.
        rows: usize,
        /// How many PEs.
        pes: usize,
    },
    /// More than can be planned.
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
}

/// What every PE has for every other.
pub enum ExchangeFlits {
    /// So many flits.
    Each(u64),
    /// A row for each PE.
    Matrix(Vec<Vec<u64>>),
}

impl ExchangeFlitsArgs {
    /// What was typed, and what the file says.
    ///
    /// # Errors
    ///
    /// That it is none of the two, or that the file is no matrix.
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
        // `parse` alone would also take `+5`.
        let number = number.filter(|number| number.bytes().all(|b| b.is_ascii_digit()));
        let flits = number.and_then(|number| number.parse().ok());
        let not_each = || ExchangeFlitsError::NotEach {
            given: given.clone(),
        };
        flits.map(ExchangeFlits::Each).ok_or_else(not_each)
    }
}

impl ExchangeFlits {
    /// A row for each of so many PEs.
    ///
    /// # Errors
    ///
    /// That they are for others, or too much.
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
