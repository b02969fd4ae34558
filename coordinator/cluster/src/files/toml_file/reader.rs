//! The text of a file while it is read, with all errors so far. An error is a sentence, written where it
//! is found, because it is only printed beside its position.

use std::cell::RefCell;
use std::fmt::Display;

use toml::Spanned;
use toml::de::DeValue;

use crate::files::user_file::{PositionedError, SourcePosition, beginning};

/// A value and its position.
pub type Value<'t> = Spanned<DeValue<'t>>;

/// Number of bytes that are searched at most twice to find a column: one line may contain a million
/// values.
const BLOCK: usize = 256;

/// Returns how many characters begin in `bytes`: all bytes of a character but the first are 10xxxxxx.
fn count_characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte & 0xc0 != 0x80).count()
}

/// Collects errors while a text is read.
pub struct Reader<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    /// Number of characters that begin before each block of [`BLOCK`] bytes.
    characters: Vec<usize>,
    pub(super) faults: RefCell<Vec<PositionedError>>,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let after_breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        let blocks = text.as_bytes().chunks(BLOCK);
        let ends = blocks.scan(0, |before, block| {
            *before += count_characters(block);
            Some(*before)
        });
        Self {
            text,
            line_starts: std::iter::once(0).chain(after_breaks).collect(),
            characters: std::iter::once(0).chain(ends).collect(),
            faults: RefCell::default(),
        }
    }

    /// Returns the position of the byte at `offset`.
    pub(super) fn spot(&self, offset: usize) -> SourcePosition {
        let line = self.line_starts.partition_point(|&start| start <= offset);
        let characters = |offset: usize| {
            let block = offset / BLOCK;
            self.characters[block] + count_characters(&self.text.as_bytes()[block * BLOCK..offset])
        };
        let column = characters(offset) - characters(self.line_starts[line - 1]) + 1;
        SourcePosition { line, column }
    }

    pub(super) fn spot_of<T>(&self, spanned: &Spanned<T>) -> SourcePosition {
        self.spot(spanned.span().start)
    }

    pub fn fault(&self, spot: impl Into<Option<SourcePosition>>, fault: impl Display) {
        let (spot, fault) = (spot.into(), fault.to_string());
        self.faults
            .borrow_mut()
            .push(PositionedError { spot, fault });
    }

    pub fn fault_count(&self) -> usize {
        self.faults.borrow().len()
    }

    /// Returns a value as the file writes it, for messages.
    pub(super) fn found(&self, value: &Value<'_>) -> String {
        let text = self.text.get(value.span()).unwrap_or_default();
        format!("`{}`", beginning(text.lines().next().unwrap_or_default()))
    }
}
