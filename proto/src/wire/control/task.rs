//! What is said when a PE runs a command: what to run, what it says, how it ended.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use bytes::Bytes;

use super::missing;
use super::to_pe::{parse_path, path_bytes};
use crate::wire::{MAX_LAST_LINES, MAX_LINE_CHARS, WireError, pb};

/// A command, and where what it works on lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The program and its arguments; at least the former.
    pub words: Vec<OsString>,
    /// The working folder, an absolute path: P3's shard is `in/p3` below it, and what comes
    /// of it is to be `out/p3`.
    pub work: PathBuf,
    /// How many PEs there are, P0 included.
    pub pes: u32,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// How.
    pub end: End,
    /// How long it ran, in nanoseconds.
    pub took_ns: u64,
    /// Bytes of the files that it wrote and that can be sent; 0 if it failed.
    pub wrote_bytes: u64,
    /// What it said last on stderr: [`MAX_LAST_LINES`] at most, each of [`MAX_LINE_CHARS`]
    /// at most.
    pub last_lines: Vec<String>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Why it was not run, or why what it wrote cannot be sent.
    Failed(String),
}

impl Run {
    pub(super) fn put(self) -> pb::Run {
        let words = self.words.iter();
        pb::Run {
            words: words
                .map(|word| Bytes::copy_from_slice(word.as_bytes()))
                .collect(),
            work: path_bytes(&self.work),
            pes: self.pes,
        }
    }

    pub(super) fn parse(run: pb::Run) -> Result<Run, WireError> {
        let words = run.words.into_iter();
        let words: Vec<OsString> = words.map(|word| OsString::from_vec(word.into())).collect();
        if words.first().is_none_or(|program| program.is_empty()) {
            return Err(missing("the command"));
        }
        if words.iter().any(|word| word.as_bytes().contains(&0)) {
            return Err(WireError::malformed("a word of a command with a zero byte"));
        }
        Ok(Run {
            words,
            work: parse_work(run.work)?,
            pes: run.pes,
        })
    }
}

/// A working folder: the same from wherever somebody looks.
pub(super) fn parse_work(bytes: Bytes) -> Result<PathBuf, WireError> {
    let work = parse_path(bytes);
    match work.is_absolute() && !work.as_os_str().as_bytes().contains(&0) {
        true => Ok(work),
        false => Err(WireError::malformed(
            "a working folder that is no absolute path",
        )),
    }
}

impl Ran {
    pub(super) fn put(self) -> pb::Ran {
        use pb::ran::End as Put;
        pb::Ran {
            took_ns: self.took_ns,
            wrote_bytes: self.wrote_bytes,
            last_lines: self.last_lines,
            end: Some(match self.end {
                End::Exited(code) => Put::Code(code),
                End::Signalled(signal) => Put::Signal(signal),
                End::Failed(why) => Put::Failed(why),
            }),
        }
    }

    pub(super) fn parse(ran: pb::Ran) -> Result<Ran, WireError> {
        use pb::ran::End as Put;
        let is_long = |line: &String| line.chars().count() > MAX_LINE_CHARS;
        if ran.last_lines.len() > MAX_LAST_LINES || ran.last_lines.iter().any(is_long) {
            return Err(WireError::malformed("more last lines than there can be"));
        }
        Ok(Ran {
            took_ns: ran.took_ns,
            wrote_bytes: ran.wrote_bytes,
            last_lines: ran.last_lines,
            end: match ran.end.ok_or_else(|| missing("how a command ended"))? {
                Put::Code(code) => End::Exited(code),
                Put::Signal(signal) => End::Signalled(signal),
                Put::Failed(why) => End::Failed(why),
            },
        })
    }
}
