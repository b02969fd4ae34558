//! The messages for running a command at a PE: the command, its output and its result.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use bytes::Bytes;

use super::codec::{missing, parse_path, path_bytes};
use crate::wire::{MAX_LAST_LINES, MAX_LINE_CHARS, MAX_NOT_TAKEN, WireError, pb};

/// A command, and the folder that it works on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The program and its arguments; not empty.
    pub words: Vec<OsString>,
    /// The working folder, an absolute path: the input of P3 is `in/p3` below it, and the result
    /// `out/p3`.
    pub work: PathBuf,
    /// Number of PEs, P0 included.
    pub pes: u32,
    /// Time after which the command is killed, in nanoseconds; 0 for no limit.
    pub time_limit_ns: u64,
}

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The way in which it ended.
    pub end: End,
    /// Time that it ran, in nanoseconds.
    pub took_ns: u64,
    /// Bytes of the files that it wrote and that can be sent; 0 if it failed.
    pub wrote_bytes: u64,
    /// Last lines on standard error: at most [`MAX_LAST_LINES`], each of at most
    /// [`MAX_LINE_CHARS`].
    pub last_lines: Vec<String>,
    /// Entries that the command wrote and that are not in its result, with reasons: at most
    /// [`MAX_NOT_TAKEN`] lines, each of at most [`MAX_LINE_CHARS`].
    pub not_taken: Vec<String>,
}

/// The way in which a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The command exited with this status.
    Exited(i32),
    /// This signal killed the command.
    Signalled(i32),
    /// The command was not run, or its files cannot be sent, for this reason.
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
            time_limit_ns: self.time_limit_ns,
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
            time_limit_ns: run.time_limit_ns,
        })
    }
}

/// Parses the path of a working folder, which must be absolute.
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
            not_taken: self.not_taken,
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
        if ran.not_taken.len() > MAX_NOT_TAKEN || ran.not_taken.iter().any(is_long) {
            return Err(WireError::malformed(
                "more entries that are not taken than there can be",
            ));
        }
        Ok(Ran {
            took_ns: ran.took_ns,
            wrote_bytes: ran.wrote_bytes,
            last_lines: ran.last_lines,
            not_taken: ran.not_taken,
            end: match ran.end.ok_or_else(|| missing("how a command ended"))? {
                Put::Code(code) => End::Exited(code),
                Put::Signal(signal) => End::Signalled(signal),
                Put::Failed(why) => End::Failed(why),
            },
        })
    }
}
