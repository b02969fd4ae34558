//! A fuzz target, and the check of a parser of text.

use super::PART;

/// A parser of external input.
pub struct Target {
    /// Name for the command line and the corpus.
    pub name: &'static str,
    /// Parses an input. `Ok` contains the parser's answer, `Err` the violated property.
    pub feed: fn(&[u8]) -> Result<String, String>,
    /// Returns the first inputs.
    pub examples: fn() -> Vec<Vec<u8>>,
    /// Words with a meaning in the format, with `|` between them.
    pub(super) words: &'static str,
}

impl Target {
    pub(super) const fn new(
        name: &'static str,
        feed: fn(&[u8]) -> Result<String, String>,
        examples: fn() -> Vec<Vec<u8>>,
        words: &'static str,
    ) -> Target {
        Target {
            name,
            feed,
            examples,
            words,
        }
    }
}

/// Runs the parser `parse` on text and checks that its faults are printable, because they go to a
/// terminal.
pub(super) fn parse_text(
    input: &[u8],
    parse: impl Fn(&str) -> Result<String, Vec<String>>,
) -> Result<String, String> {
    let text = String::from_utf8_lossy(input);
    match parse(&text) {
        Ok(parsed) => Ok(parsed),
        Err(faults) if faults.is_empty() => Err("refused without a word".to_owned()),
        Err(faults) => {
            let control = |c: char| c.is_control() && c != '\n';
            match faults.iter().find(|fault| fault.contains(control)) {
                Some(fault) => Err(format!("control characters in a fault: {fault:?}")),
                None => Ok(faults.join(PART)),
            }
        }
    }
}
