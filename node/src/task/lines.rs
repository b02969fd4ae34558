//! Splits a command's output into lines.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use flitcast_proto::wire::{MAX_LAST_LINES, MAX_LINE_CHARS};

/// Bytes at the end of a file in which its last lines are: enough for those of usual length.
const LAST_BLOCK: u64 = 4096;

/// The incomplete last line.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    /// Whether its beginning was returned as a line.
    is_split: bool,
}

impl Lines {
    /// Returns the lines that these bytes complete. A long line is split.
    pub fn cut(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut complete = Vec::new();
        for &byte in bytes {
            if byte == b'\n' {
                let is_over = std::mem::take(&mut self.is_split) && self.begun.is_empty();
                complete.extend((!is_over).then(|| self.take()));
                continue;
            }
            self.begun.push(byte);
            // A character has at least one byte.
            if self.begun.len() == MAX_LINE_CHARS {
                let rest = self.begun.split_off(whole_characters(&self.begun));
                complete.push(self.take());
                (self.begun, self.is_split) = (rest, true);
            }
        }
        complete
    }

    /// Returns the text after the last end of a line.
    pub fn rest(&mut self) -> Vec<String> {
        match self.begun.is_empty() {
            true => Vec::new(),
            false => vec![self.take()],
        }
    }

    fn take(&mut self) -> String {
        let line = String::from_utf8_lossy(&self.begun).into_owned();
        self.begun.clear();
        line
    }
}

/// Returns the number of bytes before a character whose end is missing.
fn whole_characters(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

/// Returns the last lines of a file, of those that begin in its last block.
pub fn last_of(file: &Path) -> VecDeque<String> {
    let mut block = Vec::new();
    let read = File::open(file).and_then(|mut file| {
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LAST_BLOCK)))?;
        file.take(LAST_BLOCK).read_to_end(&mut block)
    });
    if let Err(error) = read {
        tracing::debug!(%error, "the output of a command cannot be read");
    }
    let mut lines = Lines::default();
    let mut all = lines.cut(&block);
    all.extend(lines.rest());
    all.split_off(all.len().saturating_sub(MAX_LAST_LINES))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_where_they_end_or_are_too_long() {
        let mut lines = Lines::default();
        assert_eq!(lines.cut(b"one\ntw"), ["one"]);
        assert_eq!(lines.cut("o\n\nthr\u{e9}".as_bytes()), ["two", ""]);
        assert_eq!(lines.rest(), ["thr\u{e9}"]);
        assert!(lines.rest().is_empty());
        let long = lines.cut(&[b'x'; 2 * MAX_LINE_CHARS + 1]);
        assert_eq!(long.len(), 2);
        assert!(long.iter().all(|line| line.len() == MAX_LINE_CHARS));
        assert_eq!(lines.rest(), ["x"]);
        let full = format!("{}\n\nx\n", "y".repeat(MAX_LINE_CHARS));
        let cut = Lines::default().cut(full.as_bytes());
        assert_eq!(cut, [&full[..MAX_LINE_CHARS], "", "x"]);
        // No character is cut.
        let wide = format!("z{}\n", "\u{e9}".repeat(MAX_LINE_CHARS));
        let cut = Lines::default().cut(wide.as_bytes());
        assert_eq!(cut.concat(), wide.trim_end());
    }
}
