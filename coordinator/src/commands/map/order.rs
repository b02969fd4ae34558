//! The command of a map, and the rules by which PEs run it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

use flitcast_proto::wire::control::Run;

use super::halt::Halt;
use super::task::ShardTask;

/// The word in a command that is replaced by the name of the shard.
const BRACES: &[u8] = b"{}";

/// The command, and the rules by which PEs run it.
pub struct Order {
    pub words: Vec<OsString>,
    /// Whether `{}` in a word is replaced by the name of the shard.
    pub has_braces: bool,
    pub work: PathBuf,
    /// Number of PEs, the root included.
    pub pes: u32,
    /// Time after which the command is killed, in nanoseconds; 0 for no limit.
    pub time_limit_ns: u64,
    /// Number of commands that each PE runs at once.
    pub jobs: usize,
    /// Number of times that a failed command is run again.
    pub retries: u32,
    pub halt: Halt,
    /// Time that a command runs at least before an idle PE runs its shard as well.
    pub speculate: Duration,
    /// Whether all PEs share the working folder, so that each can run the command on any shard.
    pub is_shared: bool,
}

impl Order {
    /// Returns the words of the command on a shard.
    pub fn words_for(&self, task: &ShardTask) -> Vec<OsString> {
        let words = self.words.iter();
        match self.has_braces {
            true => words.map(|word| with_name(word, &task.name)).collect(),
            false => words.cloned().collect(),
        }
    }

    /// Returns the message to the PE that runs the command on a shard.
    pub fn run(&self, task: &ShardTask) -> Run {
        Run {
            words: self.words_for(task),
            work: self.work.clone(),
            pes: self.pes,
            time_limit_ns: self.time_limit_ns,
            shard: task.name.clone(),
            home: task.is_named.then_some(task.home),
            linked: task.is_named || self.has_braces,
        }
    }
}

/// Returns whether a word has a place for the name of a shard.
pub fn has_braces(word: &OsString) -> bool {
    find(word.as_bytes()).is_some()
}

fn find(text: &[u8]) -> Option<usize> {
    text.windows(BRACES.len()).position(|part| part == BRACES)
}

/// Replaces `{}` in a word by the name of a shard.
pub fn with_name(word: &OsStr, name: &OsStr) -> OsString {
    let (mut rest, mut out) = (word.as_bytes(), Vec::new());
    while let Some(at) = find(rest) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(name.as_bytes());
        rest = &rest[at + BRACES.len()..];
    }
    out.extend_from_slice(rest);
    OsString::from_vec(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_replaced_wherever_they_are() {
        let with = |word: &str| with_name(OsStr::new(word), OsStr::new("a b"));
        for (word, expected) in [
            ("{}", "a b"),
            ("x{}y{}", "xa bya b"),
            ("{{}}", "{a b}"),
            ("{ } {", "{ } {"),
            ("", ""),
        ] {
            assert_eq!(with(word), expected);
        }
    }
}
