//! Helpers for all files that users write: they are read up to a limit, and all errors in one are
//! reported at once, each with its position. The content of a file is not known here.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, io};

use flitcast_node::system::regular;

/// Number of errors that are printed: in a file of another kind, every line has one.
const LISTED: usize = 100;

/// The name of a kind of file in messages, and the maximum length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// Name, such as "tree file".
    pub name: &'static str,
    pub max_bytes: u64,
}

/// A reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file cannot be read, is not text, or is too long, so it is most likely of another kind.
    #[error("{0}")]
    Unreadable(String),
    #[error("{}", listed(path, faults))]
    Faults {
        path: PathBuf,
        /// All errors, in the order of the file.
        faults: Vec<PositionedError>,
    },
}

/// A position in a file; both numbers start at 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourcePosition {
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionedError {
    /// The position; `None` for the file as a whole.
    pub spot: Option<SourcePosition>,
    pub fault: String,
}

impl PositionedError {
    /// Creates an error of a line, or of the file as a whole if that is `None`.
    pub(super) fn new(line: Option<usize>, fault: impl ToString) -> PositionedError {
        PositionedError {
            spot: line.map(|line| SourcePosition { line, column: 0 }),
            fault: fault.to_string(),
        }
    }
}

/// Returns the value if there are no errors.
pub(super) fn accepted<T>(
    value: T,
    faults: Vec<PositionedError>,
) -> Result<T, Vec<PositionedError>> {
    match faults.is_empty() {
        true => Ok(value),
        false => Err(faults),
    }
}

/// Parses an integer without a sign.
pub(super) fn whole_number<T: FromStr>(text: &str) -> Option<T> {
    // `parse` alone would also accept `+5`.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| digits)
}

/// Returns enough of a text to find it by.
pub(super) fn beginning(text: &str) -> String {
    text.chars().take(24).collect()
}

/// Reads the file at `path` with `parse`; returns an error if it cannot be read, or all errors in it.
pub fn load<T>(
    kind: FileKind,
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Vec<PositionedError>>,
) -> Result<T, FileError> {
    let FileKind { name, max_bytes } = kind;
    let text = regular::read_text(path, max_bytes).map_err(|error| {
        let path = path.display();
        FileError::Unreadable(match error.kind() {
            io::ErrorKind::FileTooLarge => {
                format!("the {name} {path} has more than {max_bytes} bytes")
            }
            _ => format!("cannot read the {name} {path}: {error}"),
        })
    })?;
    let path = path.to_owned();
    parse(&text).map_err(|faults| FileError::Faults { path, faults })
}

/// Returns one line for each error, as compilers do: `tree.toml:7:1: P3: ...`.
fn listed(path: &Path, faults: &[PositionedError]) -> String {
    let line = |PositionedError { spot, fault }: &PositionedError| {
        let spot = spot.map_or(String::new(), |spot| format!("{spot}:"));
        format!("{}:{spot} {fault}", path.display())
    };
    let more = faults.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("and {more} more faults"));
    let lines: Vec<String> = faults.iter().take(LISTED).map(line).chain(more).collect();
    lines.join("\n")
}

/// Returns the lines that are printed for the errors of a file called `t`.
#[cfg(test)]
pub fn printed(faults: Vec<PositionedError>) -> Vec<String> {
    let all = listed(Path::new("t"), &faults);
    all.lines().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let kind = FileKind {
            name: "tree file",
            max_bytes: 9,
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let refused = |path: &Path, why: &str| {
            let message = load(kind, path, |_| Ok(())).unwrap_err().to_string();
            let file = format!("the tree file {}", path.display());
            assert!(
                message.contains(&file) && message.contains(why),
                "{message}"
            );
        };
        refused(&path, "cannot read");
        refused(dir.path(), "cannot read");
        std::fs::write(&path, [0xff, 0xfe, 0]).unwrap();
        refused(&path, "UTF-8");
        std::fs::write(&path, [0; 10]).unwrap();
        refused(&path, "has more than 9 bytes");
    }
}
