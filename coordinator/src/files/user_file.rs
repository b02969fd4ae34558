//! What the files that people write have in common: they are read up to a bound, and all that
//! is wrong in one is reported at once, each fault with its place. What stands in a file is
//! not known here.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// How many faults are printed: in a file that is something else, every line is one.
const LISTED: usize = 100;

/// What a file is called in messages, and the longest that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// "tree file".
    pub name: &'static str,
    /// In bytes.
    pub max_bytes: u64,
}

/// Why a file says nothing.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system does not give it to us, or it is not text.
    #[error("cannot read the {} {}: {error}", kind.name, path.display())]
    Unreadable {
        /// What it should be.
        kind: FileKind,
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Not such a file, in all likelihood.
    #[error("the {} {} has more than {} bytes", kind.name, path.display(), kind.max_bytes)]
    TooLong {
        /// What it should be.
        kind: FileKind,
        /// The file.
        path: PathBuf,
    },
    /// It can be read, and is wrong.
    #[error("{}", Listed { path, faults })]
    Faults {
        /// The file.
        path: PathBuf,
        /// All that is wrong, in the order of the file.
        faults: Vec<SpotFault>,
    },
}

/// Where something begins in a file; both are counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// The line.
    pub line: usize,
    /// In characters, as editors count them; 0 where only the line is known.
    pub column: usize,
}

/// As compilers print it: `7:12`.
impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            0 => write!(f, "{}", self.line),
            column => write!(f, "{}:{column}", self.line),
        }
    }
}

/// A fault and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotFault {
    /// `None` if it is the file as a whole.
    pub spot: Option<Spot>,
    /// What is wrong there, as it is told.
    pub fault: String,
}

/// Reads the file at `path` with `parse`.
///
/// # Errors
///
/// That it cannot be read, or all that is wrong in it.
pub fn load<T>(
    kind: FileKind,
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Vec<SpotFault>>,
) -> Result<T, FileError> {
    let path = path.to_owned();
    let mut text = String::new();
    let read =
        File::open(&path).and_then(|file| file.take(kind.max_bytes + 1).read_to_string(&mut text));
    match read {
        Err(error) => Err(FileError::Unreadable { kind, path, error }),
        Ok(bytes) if bytes as u64 > kind.max_bytes => Err(FileError::TooLong { kind, path }),
        Ok(_) => parse(&text).map_err(|faults| FileError::Faults { path, faults }),
    }
}

/// One fault a line, each as compilers print it: `tree.toml:7:1: P3: ...`.
struct Listed<'a> {
    path: &'a Path,
    faults: &'a [SpotFault],
}

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, SpotFault { spot, fault }) in self.faults.iter().take(LISTED).enumerate() {
            let break_before = if i == 0 { "" } else { "\n" };
            write!(f, "{break_before}{}:", self.path.display())?;
            if let Some(spot) = spot {
                write!(f, "{spot}:")?;
            }
            write!(f, " {fault}")?;
        }
        match self.faults.len().saturating_sub(LISTED) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more faults"),
        }
    }
}
