//! Fuzzing of parsers: a seeded generator changes inputs, and those with a new kind of answer are
//! kept. It needs no instrumentation, so it runs on any toolchain; the same seed tries the same
//! inputs.
//!
//! `targets` and `state` define the parsers and what must hold, `examples` the first inputs, and
//! `mutate` the changes.

mod examples;
mod mutate;
mod payload;
mod state;
mod target;
mod targets;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use flitcast_proto::seeded::SplitMix64;

pub use crate::wire_examples::hex;
pub use target::Target;
pub use targets::TARGETS;

use crate::wire_examples::from_hex;

/// Maximum bytes of an input; longer ones would cost time without new results.
const MOST_BYTES: usize = 4096;
/// Maximum number of inputs that are kept in memory for further changes.
const MOST_KEPT: usize = 2000;

/// An input that violates a property.
#[derive(Clone, Debug)]
pub struct Finding {
    pub input: Vec<u8>,
    pub what: String,
}

pub struct Fuzzer {
    target: &'static Target,
    words: Vec<&'static str>,
    chance: SplitMix64,
    kept: Vec<Vec<u8>>,
    answers: BTreeSet<String>,
}

impl Fuzzer {
    /// Starts with the examples and with the inputs in `tests/corpus`.
    ///
    /// # Errors
    ///
    /// Returns the first of these inputs that violates a property.
    pub fn new(target: &'static Target, seed: u64) -> Result<Fuzzer, Finding> {
        let mut fuzzer = Fuzzer {
            target,
            words: target.words.split_terminator('|').collect(),
            chance: SplitMix64::new(seed),
            kept: Vec::new(),
            answers: BTreeSet::new(),
        };
        for input in (target.examples)().into_iter().chain(corpus(target)) {
            fuzzer.answers.insert(answer(target, &input)?);
            fuzzer.kept.push(input);
        }
        Ok(fuzzer)
    }

    /// Tries one more input and returns whether its answer was new.
    ///
    /// # Errors
    ///
    /// Returns an error if the input violates a property.
    pub fn step(&mut self) -> Result<bool, Finding> {
        let chance = &mut self.chance;
        let mut input = mutate::changed(&self.kept, &self.words, chance);
        input.truncate(MOST_BYTES);
        let is_new = self.answers.insert(answer(self.target, &input)?);
        if is_new && self.kept.len() < MOST_KEPT {
            self.kept.push(input);
        }
        Ok(is_new)
    }

    /// Returns the number of different answers so far.
    pub fn answers(&self) -> usize {
        self.answers.len()
    }

    /// Returns the inputs that were kept, including the examples and the corpus.
    pub fn kept(&self) -> &[Vec<u8>] {
        &self.kept
    }
}

/// Returns the target's answer to an input, without numbers and names.
fn answer(target: &Target, input: &[u8]) -> Result<String, Finding> {
    let finding = |what| Finding {
        input: input.to_vec(),
        what,
    };
    let answer = catch_unwind(AssertUnwindSafe(|| (target.feed)(input)));
    let answer = answer.map_err(|panic| finding(format!("it panics: {}", message(&*panic))))?;
    let answer = answer.map_err(finding)?;
    Ok(kind_of(&answer))
}

/// Separator between the parts of an answer; no parser prints it.
const PART: &str = "\u{1f}";

/// Reduces an answer to its kind, which many inputs share: for each part, the words before and
/// after quoted text, with each kind of part once.
fn kind_of(answer: &str) -> String {
    const QUOTES: [char; 2] = ['"', '`'];
    let words = |text: &str| {
        let words = text.split(|c: char| !c.is_ascii_alphabetic());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).take(6).collect();
        words.join(" ")
    };
    let kind = |part: &str| match (part.split_once(QUOTES), part.rsplit_once(QUOTES)) {
        (Some((ahead, _)), Some((_, behind))) => format!("{} .. {}", words(ahead), words(behind)),
        _ => words(part),
    };
    let parts: BTreeSet<String> = answer.split(PART).map(kind).collect();
    let parts: Vec<String> = parts.into_iter().take(6).collect();
    parts.join("; ")
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or(panic.downcast_ref::<&str>().map(|text| text.to_string()));
    text.unwrap_or_default()
}

/// Returns the stored inputs of a target, one per line in hexadecimal; none if there is no file.
pub fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let (folder, name) = (env!("CARGO_MANIFEST_DIR"), target.name);
    let text = std::fs::read_to_string(format!("{folder}/corpus/{name}.txt"));
    let text = text.unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let input = |line| from_hex(line).unwrap_or_else(|| panic!("{name}: `{line}`"));
    lines.map(input).collect()
}

/// Writes the first inputs to a folder, each in a file, for other fuzzers.
///
/// # Errors
///
/// Returns an error if writing fails.
pub fn write_seeds(target: &Target, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let inputs = (target.examples)().into_iter().chain(corpus(target));
    for (number, input) in inputs.enumerate() {
        std::fs::write(folder.join(format!("seed-{number:03}")), input)?;
    }
    Ok(())
}
