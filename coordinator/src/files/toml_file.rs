//! What the TOML files that people write have in common: they are read up to a bound,
//! and all that is wrong in one is reported at once, each fault with its line and column. No
//! file's keys live here.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and where it stands.
pub type Value<'t> = Spanned<DeValue<'t>>;

/// What a file is called in messages, and the longest that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// "tree file".
    pub name: &'static str,
    /// In bytes.
    pub max_bytes: u64,
}

/// Why a file says nothing; `F` is what can be wrong in one place of it.
#[derive(Debug, thiserror::Error)]
pub enum FileError<F: fmt::Display> {
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
        faults: Vec<SpotFault<F>>,
    },
}

/// Where something begins in a file; both are counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spot {
    /// The line.
    pub line: usize,
    /// In characters, as editors count them.
    pub column: usize,
}

/// As compilers print it: `7:12`.
impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A fault and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpotFault<F> {
    /// `None` if it is the file as a whole.
    pub spot: Option<Spot>,
    /// What is wrong there.
    pub fault: F,
}

/// What can be wrong with any file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misread {
    /// Not TOML; a key that is given twice is reported as this, too.
    #[error("{0}")]
    Syntax(String),
    /// A key that means nothing.
    #[error("unknown key `{key}`; known here: {known}")]
    UnknownKey {
        /// The key.
        key: String,
        /// Those that mean something in its place.
        known: String,
    },
    /// A value of the wrong type.
    #[error("{key} must be {expected}, not {found}")]
    WrongType {
        /// Whose value.
        key: String,
        /// What is expected.
        expected: String,
        /// What stands there.
        found: String,
    },
}

/// Reads the file at `path` with `parse`.
///
/// # Errors
///
/// That it cannot be read, or all that is wrong in it.
pub fn load<T, F: fmt::Display>(
    kind: FileKind,
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, Vec<SpotFault<F>>>,
) -> Result<T, FileError<F>> {
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

/// What `read` makes of the document in `text`; otherwise at least one fault, in
/// the order of the file. `read` returns `None` only after it has reported one.
pub fn parse<T, F: From<Misread>>(
    text: &str,
    read: impl FnOnce(&mut Reader<'_, F>, &DeTable<'_>) -> Option<T>,
) -> Result<T, Vec<SpotFault<F>>> {
    let mut reader = Reader::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let spot = error.span().map(|span| reader.spot(span.start));
        reader.fault(spot, Misread::Syntax(error.message().to_owned()).into());
    }
    // After a syntax error it is anybody's guess what belongs where.
    let said = match errors.is_empty() {
        true => read(&mut reader, document.get_ref()),
        false => None,
    };
    match said {
        Some(said) if reader.faults.is_empty() => Ok(said),
        _ => {
            reader.faults.sort_by_key(|fault| fault.spot);
            Err(reader.faults)
        }
    }
}

/// Bytes that are counted through to find a column, at most twice: a million values may
/// stand on one line.
const BLOCK: usize = 256;

/// How many characters begin in `bytes`: of a character's, all but the first are 10xxxxxx.
fn beginning(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

/// Collects faults on the way from text to what it means.
pub struct Reader<'t, F> {
    text: &'t str,
    line_starts: Vec<usize>,
    /// Characters that begin before each block of [`BLOCK`] bytes.
    characters: Vec<usize>,
    faults: Vec<SpotFault<F>>,
}

impl<'t, F: From<Misread>> Reader<'t, F> {
    fn new(text: &'t str) -> Self {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let blocks = text.as_bytes().chunks(BLOCK);
        let ends = blocks.scan(0, |before, block| {
            *before += beginning(block);
            Some(*before)
        });
        Self {
            text,
            line_starts: std::iter::once(0).chain(after_breaks).collect(),
            characters: std::iter::once(0).chain(ends).collect(),
            faults: Vec::new(),
        }
    }

    /// Where the byte at `offset` stands.
    fn spot(&self, offset: usize) -> Spot {
        let line = self.line_starts.partition_point(|&start| start <= offset);
        let characters = |offset: usize| {
            let block = offset / BLOCK;
            self.characters[block] + beginning(&self.text.as_bytes()[block * BLOCK..offset])
        };
        let column = characters(offset) - characters(self.line_starts[line - 1]) + 1;
        Spot { line, column }
    }

    /// Where something begins.
    pub fn spot_of<T>(&self, spanned: &Spanned<T>) -> Spot {
        self.spot(spanned.span().start)
    }

    /// Reports a fault.
    pub fn fault(&mut self, spot: impl Into<Option<Spot>>, fault: F) {
        let spot = spot.into();
        self.faults.push(SpotFault { spot, fault });
    }

    /// How many there are so far.
    pub fn fault_count(&self) -> usize {
        self.faults.len()
    }

    /// A value as the file writes it, for messages.
    pub fn found(&self, value: &Value<'_>) -> String {
        let text = self.text.get(value.span()).unwrap_or_default();
        let first_line = text.lines().next().unwrap_or_default();
        format!("`{}`", first_line.chars().take(24).collect::<String>())
    }

    /// Reports a value that is not what is expected there.
    pub fn wrong_type(
        &mut self,
        key: impl Into<String>,
        expected: impl Into<String>,
        value: &Value<'_>,
    ) {
        let misread = Misread::WrongType {
            key: key.into(),
            expected: expected.into(),
            found: self.found(value),
        };
        self.fault(self.spot_of(value), misread.into());
    }

    /// Reports a key that is none of the `known` ones.
    pub fn unknown_key(&mut self, key: &Spanned<impl AsRef<str>>, known: impl Into<String>) {
        let misread = Misread::UnknownKey {
            key: key.get_ref().as_ref().to_owned(),
            known: known.into(),
        };
        self.fault(self.spot_of(key), misread.into());
    }
}

/// A text as TOML's basic strings want it, which is as JSON does but for one character.
pub fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.replace('\u{7f}', "\\u007f")
}

/// One fault a line, each as compilers print it: `tree.toml:7:1: P3: ...`.
struct Listed<'a, F> {
    path: &'a Path,
    faults: &'a [SpotFault<F>],
}

impl<F: fmt::Display> fmt::Display for Listed<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, SpotFault { spot, fault }) in self.faults.iter().enumerate() {
            let break_before = if i == 0 { "" } else { "\n" };
            write!(f, "{break_before}{}:", self.path.display())?;
            if let Some(spot) = spot {
                write!(f, "{spot}:")?;
            }
            write!(f, " {fault}")?;
        }
        Ok(())
    }
}
