//! Feeding parsers anything: inputs are changed by a seeded generator, and kept where
//! they bring out an answer that was not seen before. No instrumentation, so it runs on
//! any toolchain; the same seed tries the same inputs.
//!
//! `targets` and `state` say what is fed and what must hold, `examples` gives the first inputs, and
//! `mutate` changes them.

mod examples;
mod mutate;
mod payload;
mod state;
mod targets;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use flitcast_proto::seeded::SplitMix64;

pub use targets::{TARGETS, Target};

/// Longer inputs would cost time and show nothing new.
const MOST_BYTES: usize = 4096;
/// Inputs that are kept in memory to be changed further.
const MOST_KEPT: usize = 2000;

/// An input that breaks a promise, and how.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The input.
    pub input: Vec<u8>,
    /// What it did.
    pub what: String,
}

/// A target under fire.
pub struct Fuzzer {
    target: &'static Target,
    chance: SplitMix64,
    kept: Vec<Vec<u8>>,
    answers: BTreeSet<String>,
}

impl Fuzzer {
    /// Begins with the examples and what is kept in `tests/corpus`.
    ///
    /// # Errors
    ///
    /// The first of these inputs that breaks a promise.
    pub fn new(target: &'static Target, seed: u64) -> Result<Fuzzer, Finding> {
        let mut fuzzer = Fuzzer {
            target,
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

    /// Tries one input more. Returns whether its answer was new.
    ///
    /// # Errors
    ///
    /// That it breaks a promise.
    pub fn step(&mut self) -> Result<bool, Finding> {
        let chance = &mut self.chance;
        let mut input = mutate::changed(&self.kept, self.target.words, chance);
        input.truncate(MOST_BYTES);
        let is_new = self.answers.insert(answer(self.target, &input)?);
        if is_new && self.kept.len() < MOST_KEPT {
            self.kept.push(input);
        }
        Ok(is_new)
    }

    /// Different answers so far.
    pub fn answers(&self) -> usize {
        self.answers.len()
    }

    /// What is kept, beyond the examples and the corpus with which it began.
    pub fn kept(&self) -> &[Vec<u8>] {
        &self.kept
    }
}

/// What the target says to an input, without its numbers and names.
fn answer(target: &Target, input: &[u8]) -> Result<String, Finding> {
    let finding = |what| Finding {
        input: input.to_vec(),
        what,
    };
    let said = catch_unwind(AssertUnwindSafe(|| (target.feed)(input)));
    let said = said.map_err(|panic| finding(format!("it panics: {}", message(&*panic))))?;
    let said = said.map_err(finding)?;
    Ok(kind_of(&said))
}

/// Between the parts of an answer: no parser says it.
const PART: &str = "\u{1f}";

/// An answer without the numbers and names in it: of each of its parts the words ahead of
/// what it quotes and those behind it, and each kind of part once. Many inputs have the
/// same.
fn kind_of(said: &str) -> String {
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
    let parts: BTreeSet<String> = said.split(PART).map(kind).collect();
    let parts: Vec<String> = parts.into_iter().take(6).collect();
    parts.join("; ")
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or(panic.downcast_ref::<&str>().map(|text| text.to_string()));
    text.unwrap_or_default()
}

/// Where the inputs of a target are kept: one in a line, in hexadecimal.
fn corpus_file(target: &Target) -> PathBuf {
    let name = format!("corpus/{}.txt", target.name);
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The inputs that are kept for a target. None, if there is no file.
///
/// # Panics
///
/// If a line is not hexadecimal.
pub fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(corpus_file(target)).unwrap_or_default();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| from_hex(line).unwrap_or_else(|| panic!("{}: `{line}`", target.name)))
        .collect()
}

/// Writes the inputs to begin with into a folder, each in a file: what other fuzzers take.
///
/// # Errors
///
/// They cannot be written.
pub fn write_seeds(target: &Target, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let inputs = (target.examples)().into_iter().chain(corpus(target));
    for (number, input) in inputs.enumerate() {
        std::fs::write(folder.join(format!("seed-{number:03}")), input)?;
    }
    Ok(())
}

/// Writes an input as the corpus has it.
pub fn hex(input: &[u8]) -> String {
    input.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(line: &str) -> Option<Vec<u8>> {
    let pairs = line.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}
