//! The messages for running a command at a PE: the command, its output and its result.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::PeId;
use crate::wire::codec::{Wire, ensure, missing, record};
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
    pub shard: OsString,
    /// The PE whose input is a folder with this shard; `None` if the PE's own input is the shard.
    pub home: Option<PeId>,
    /// Whether a shard that is a file also has its name in the command's current directory.
    pub linked: bool,
}

/// Gathered results, and their places in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceResults {
    /// A hidden folder in the output.
    pub gathered: PathBuf,
    /// The output, an absolute path as well.
    pub output: PathBuf,
    /// The path of each entry in `gathered`.
    pub from: Vec<PathBuf>,
    /// The name of each entry in the output.
    pub to: Vec<OsString>,
    /// Whether existing entries are replaced.
    pub replace: bool,
    /// For each entry the name of one that is removed from the output then; empty for none.
    pub obsolete: Vec<OsString>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
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
    pub shard: OsString,
    /// Whether the command failed and its output is in place of the result.
    pub kept_output: bool,
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

record! {
    Run = Run { words, work, pes, time_limit_ns, shard, home, linked },
    |run: &Run| {
        if run.words.first().is_none_or(|program| program.is_empty()) {
            return Err(missing("the command"));
        }
        let has_zero = run.words.iter().any(|word| word.as_bytes().contains(&0));
        ensure(!has_zero, "a word of a command with a zero byte")?;
        check_shard(&run.shard)?;
        check_work(&run.work)
    }
}

record! {
    PlaceResults = PlaceResults { gathered, output, from, to, replace, obsolete },
    |results: &PlaceResults| {
        check_work(&results.gathered)?;
        check_work(&results.output)?;
        let counts = [results.from.len(), results.to.len(), results.obsolete.len()];
        ensure(counts == [counts[0]; 3], "not one place for each result")?;
        let obsolete = results.obsolete.iter().filter(|name| !name.is_empty());
        let names = results.to.iter().chain(obsolete).map(OsString::as_os_str);
        names.chain(results.from.iter().flatten()).try_for_each(check_shard)
    }
}

/// Checks the name of a shard, which must be a name in a folder.
fn check_shard(shard: &OsStr) -> Result<(), WireError> {
    let is_name = Path::new(shard).file_name() == Some(shard);
    let is_valid = is_name && !shard.as_bytes().contains(&0);
    ensure(is_valid, "a shard without a valid name")
}

/// Checks the path of a working folder, which must be absolute.
pub(super) fn check_work(work: &Path) -> Result<(), WireError> {
    let is_valid = work.is_absolute() && !work.as_os_str().as_bytes().contains(&0);
    ensure(is_valid, "a working folder that is no absolute path")
}

impl Wire for End {
    type Pb = Option<pb::ran::End>;

    fn put(&self) -> Option<pb::ran::End> {
        Some(match self {
            End::Exited(code) => pb::ran::End::Code(*code),
            End::Signalled(signal) => pb::ran::End::Signal(*signal),
            End::Failed(why) => pb::ran::End::Failed(why.clone()),
        })
    }

    fn parse(end: Option<pb::ran::End>) -> Result<End, WireError> {
        Ok(match end.ok_or_else(|| missing("how a command ended"))? {
            pb::ran::End::Code(code) => End::Exited(code),
            pb::ran::End::Signal(signal) => End::Signalled(signal),
            pb::ran::End::Failed(why) => End::Failed(why),
        })
    }
}

record! {
    Ran = Ran { took_ns, wrote_bytes, last_lines, not_taken, end, shard, kept_output },
    |ran: &Ran| {
        let is_long = |line: &String| line.chars().count() > MAX_LINE_CHARS;
        let are_few = |lines: &[String], most| lines.len() <= most && !lines.iter().any(is_long);
        ensure(are_few(&ran.last_lines, MAX_LAST_LINES), "more last lines than there can be")?;
        let fault = "more entries that are not taken than there can be";
        ensure(are_few(&ran.not_taken, MAX_NOT_TAKEN), fault)
    }
}
