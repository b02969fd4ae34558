//! What the TOML files that people write have in common: how they are read, and what can be
//! wrong with any of them. No file's keys live here.

mod table;

use std::cell::RefCell;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use table::{Field, Table};

use super::user_file::{Spot, SpotFault};

/// A value and where it stands.
type Value<'t> = Spanned<DeValue<'t>>;

/// What can be wrong with any file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misread {
    /// Not TOML; a key that is given twice is reported as this, too.
    #[error("{0}")]
    Syntax(String),
    /// Nothing says what the rest means.
    #[error("there is no version: this is no {kind}")]
    NoVersion {
        /// What it should be.
        kind: &'static str,
    },
    /// The rest means something else.
    #[error("version {found}: this flitcast reads version {reads}{advice}")]
    OtherVersion {
        /// As the file writes it.
        found: String,
        /// The version that can be read.
        reads: u32,
        /// What to do about it, if there is more to say.
        advice: &'static str,
    },
    /// A key that has to be there.
    #[error("`{key}` is missing{}", if table.is_empty() { String::new() } else { format!(" in {table}") })]
    Missing {
        /// The key.
        key: &'static str,
        /// The table that it belongs to; empty for the file as a whole.
        table: String,
    },
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

/// What `read` makes of the document in `text`; otherwise at least one fault, in
/// the order of the file. `read` returns `None` only after it has reported one.
pub fn parse<T, F: From<Misread>>(
    text: &str,
    read: impl FnOnce(&Reader<'_, F>, &DeTable<'_>) -> Option<T>,
) -> Result<T, Vec<SpotFault<F>>> {
    let reader = Reader::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let spot = error.span().map(|span| reader.spot(span.start));
        reader.fault(spot, Misread::Syntax(error.message().to_owned()).into());
    }
    // After a syntax error it is anybody's guess what belongs where.
    let said = match errors.is_empty() {
        true => read(&reader, document.get_ref()),
        false => None,
    };
    let mut faults = reader.faults.into_inner();
    match said {
        Some(said) if faults.is_empty() => Ok(said),
        _ => {
            faults.sort_by_key(|fault| fault.spot);
            Err(faults)
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
    faults: RefCell<Vec<SpotFault<F>>>,
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
            faults: RefCell::default(),
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
    fn spot_of<T>(&self, spanned: &Spanned<T>) -> Spot {
        self.spot(spanned.span().start)
    }

    /// Reports a fault.
    pub fn fault(&self, spot: impl Into<Option<Spot>>, fault: F) {
        let spot = spot.into();
        self.faults.borrow_mut().push(SpotFault { spot, fault });
    }

    /// How many there are so far.
    pub fn fault_count(&self) -> usize {
        self.faults.borrow().len()
    }

    /// A value as the file writes it, for messages.
    fn found(&self, value: &Value<'_>) -> String {
        let text = self.text.get(value.span()).unwrap_or_default();
        let first_line = text.lines().next().unwrap_or_default();
        format!("`{}`", first_line.chars().take(24).collect::<String>())
    }

    /// Reports a value that is not what is expected there.
    fn wrong_type(&self, key: impl Into<String>, expected: impl Into<String>, value: &Value<'_>) {
        let misread = Misread::WrongType {
            key: key.into(),
            expected: expected.into(),
            found: self.found(value),
        };
        self.fault(self.spot_of(value), misread.into());
    }

    /// Reports a key that is none of the `known` ones.
    fn unknown_key(&self, key: &Spanned<impl AsRef<str>>, known: impl Into<String>) {
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
