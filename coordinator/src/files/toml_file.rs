//! What the TOML files that people write have in common: how they are read, and what can be
//! wrong with any of them. No file's keys live here. What is wrong is a sentence, written where
//! it is found: nobody does anything with it but print it beside its place.

mod table;

use std::cell::RefCell;
use std::fmt::Display;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use table::{Field, Table};

use super::user_file::{Spot, SpotFault};

/// A value and where it stands.
type Value<'t> = Spanned<DeValue<'t>>;

/// What `read` makes of the document in `text`; otherwise at least one fault, in
/// the order of the file. `read` returns `None` only after it has reported one.
pub fn parse<T>(
    text: &str,
    read: impl FnOnce(&Reader<'_>, &Table<'_, '_>) -> Option<T>,
) -> Result<T, Vec<SpotFault>> {
    let reader = Reader::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let spot = error.span().map(|span| reader.spot(span.start));
        reader.fault(spot, error.message());
    }
    // After a syntax error it is anybody's guess what belongs where.
    let said = match errors.is_empty() {
        true => read(&reader, &Table::top_level(&reader, document.get_ref())),
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
pub struct Reader<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    /// Characters that begin before each block of [`BLOCK`] bytes.
    characters: Vec<usize>,
    faults: RefCell<Vec<SpotFault>>,
}

impl<'t> Reader<'t> {
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
    pub fn fault(&self, spot: impl Into<Option<Spot>>, fault: impl Display) {
        let (spot, fault) = (spot.into(), fault.to_string());
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
}

/// A text as TOML's basic strings want it, which is as JSON does but for one character.
pub fn quoted(text: &str) -> String {
    let json = serde_json::Value::from(text).to_string();
    json.replace('\u{7f}', "\\u007f")
}
