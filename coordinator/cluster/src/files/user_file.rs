//! Helpers for all files that users write: they are read up to a limit, and all errors in one are
//! reported at once, each with its position. The content of a file is not known here.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use flitcast_node::system::regular;

/// Number of errors that are printed: in a file of another kind, every line has one.
const LISTED: usize = 100;

/// The name of a kind of file in messages, and the maximum length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// Name, such as "tree file".
    pub name: &'static str,
    /// Length in bytes.
    pub max_bytes: u64,
}

/// A reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read, or is not text.
    #[error("cannot read the {} {}: {error}", kind.name, path.display())]
    Unreadable {
        /// The expected kind.
        kind: FileKind,
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file is too long, so it is most likely of another kind.
    #[error("the {} {} has more than {} bytes", kind.name, path.display(), kind.max_bytes)]
    TooLong {
        /// The expected kind.
        kind: FileKind,
        /// The file.
        path: PathBuf,
    },
    /// The content has errors.
    #[error("{}", Listed { path, faults })]
    Faults {
        /// The file.
        path: PathBuf,
        /// All errors, in the order of the file.
        faults: Vec<PositionedError>,
    },
}

/// A position in a file; both numbers start at 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
    /// The line.
    pub line: usize,
    /// The column in characters, as editors count them; 0 if only the line is known.
    pub column: usize,
}

/// Prints the position as compilers do: `7:12`.
impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.column {
            0 => write!(f, "{}", self.line),
            column => write!(f, "{}:{column}", self.line),
        }
    }
}

/// An error and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionedError {
    /// The position; `None` for the file as a whole.
    pub spot: Option<SourcePosition>,
    /// The message.
    pub fault: String,
}

/// Reads the file at `path` with `parse`.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or all errors in it.
pub fn load<T>(
    kind: FileKind,
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Vec<PositionedError>>,
) -> Result<T, FileError> {
    let path = path.to_owned();
    match regular::read_text(&path, kind.max_bytes) {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            Err(FileError::TooLong { kind, path })
        }
        Err(error) => Err(FileError::Unreadable { kind, path, error }),
        Ok(text) => parse(&text).map_err(|faults| FileError::Faults { path, faults }),
    }
}

/// Prints one error per line, as compilers do: `tree.toml:7:1: P3: ...`.
struct Listed<'a> {
    path: &'a Path,
    faults: &'a [PositionedError],
}

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, PositionedError { spot, fault }) in self.faults.iter().take(LISTED).enumerate() {
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
