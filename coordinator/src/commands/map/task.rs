//! A shard with the ends of its command, and the result of a map.

use std::ffi::OsString;
use std::time::Duration;

use flitcast_proto::PeId;
use flitcast_proto::wire::control::{End, Ran};

use flitcast_cluster::retry::RetryReport;
use flitcast_cluster::rounds::outcome::Outcome;
use flitcast_cluster::rounds::run::Interrupted;
use flitcast_cluster::text::phrases::signal_named;

/// A shard, and the end of the command on it.
#[derive(Debug)]
pub struct ShardTask {
    /// The number of the shard among all, from 1.
    pub seq: usize,
    /// The name of the shard: that of its entry in the input, or `p3` if P3 has a part of the files.
    pub name: OsString,
    /// Whether any PE may run the command.
    pub is_named: bool,
    /// The PE that received the shard.
    pub home: PeId,
    /// The PE that ran the command last; the home before.
    pub pe: PeId,
    /// The length of the shard: as a message, or of its files if it shares the message.
    pub shard_bytes: u64,
    /// The number of times that the command was run.
    pub runs: u32,
    /// Whether an idle PE was to run it as well; that run is not a retry.
    pub has_second: bool,
    /// The last end of the command.
    pub fate: CommandFate,
    /// The reason why its result or its output is not in the output, if it should be.
    pub left_behind: Option<String>,
}

/// The end of a command.
#[derive(Debug)]
pub enum CommandFate {
    Waiting,
    Ran(Ran),
    /// The PE could not run the command to its end, or never received its shard; the text is the
    /// reason.
    Lost(String),
    /// The program ended the command; the text is the reason.
    Killed(String),
}

impl CommandFate {
    pub fn is_success(&self) -> bool {
        matches!(self, CommandFate::Ran(ran) if ran.end == End::Exited(0))
    }
}

impl ShardTask {
    /// Creates the task of a PE whose input is its shard, which may be an entry with a name; it has not
    /// been run.
    pub fn of_pe(pe: PeId, entry: Option<&OsString>, shard_bytes: u64) -> ShardTask {
        ShardTask {
            seq: pe.index(),
            name: entry.cloned().unwrap_or_else(|| numbered(pe)),
            is_named: false,
            home: pe,
            pe,
            shard_bytes,
            runs: 0,
            has_second: false,
            fate: CommandFate::Waiting,
            left_behind: None,
        }
    }

    /// Creates the task of a shard with a name; it has not been run.
    pub fn named(name: OsString, home: PeId, shard_bytes: u64) -> ShardTask {
        ShardTask {
            name,
            is_named: true,
            ..ShardTask::of_pe(home, None, shard_bytes)
        }
    }

    /// Returns whether the message of its PE is its result, with no other name.
    pub fn is_message(&self) -> bool {
        self.is_done() && !self.is_named && self.name == numbered(self.pe)
    }

    /// Returns the subject of a message about the command: `P3`, or `text at P3`.
    pub fn subject(&self) -> String {
        match self.is_named {
            true => format!("{} at {}", self.shown(), self.pe),
            false => self.pe.to_string(),
        }
    }

    /// Returns the name of the shard in one line.
    pub fn shown(&self) -> String {
        let name = self.name.to_string_lossy();
        let shown = |c: char| if c.is_control() { '?' } else { c };
        name.chars().map(shown).collect()
    }

    pub fn is_done(&self) -> bool {
        self.fate.is_success()
    }

    /// Returns whether the command failed, and its output is kept.
    pub fn has_output(&self) -> bool {
        self.ran().is_some_and(|ran| ran.kept_output)
    }

    /// Returns the last end of the command, if there is one.
    pub fn ran(&self) -> Option<&Ran> {
        match &self.fate {
            CommandFate::Ran(ran) => Some(ran),
            CommandFate::Waiting | CommandFate::Lost(_) | CommandFate::Killed(_) => None,
        }
    }

    pub fn wrote_bytes(&self) -> u64 {
        self.ran().map_or(0, |ran| ran.wrote_bytes)
    }

    /// Returns the entries that the command wrote and that are not in its result, with the reasons.
    pub fn not_taken(&self) -> &[String] {
        self.ran().map_or(&[], |ran| &ran.not_taken)
    }

    /// Returns whether the command is to be run again.
    pub fn is_due(&self, retries: u32) -> bool {
        !self.is_done() && self.runs <= retries + u32::from(self.has_second)
    }

    /// Returns whether the result is in the output.
    pub fn has_result(&self) -> bool {
        self.is_done() && self.left_behind.is_none()
    }

    /// Describes the failure, if there is one, as a predicate of the PE.
    pub fn failure(&self) -> Option<String> {
        match &self.fate {
            _ if self.is_done() => None,
            CommandFate::Waiting => Some("was not run".to_owned()),
            CommandFate::Lost(why) | CommandFate::Killed(why) => Some(why.clone()),
            CommandFate::Ran(ran) => Some(match &ran.end {
                End::Exited(code) => format!("the command ended with exit status {code}"),
                End::Signalled(signal) => {
                    format!("the command was killed by {}", signal_named(*signal))
                }
                End::Failed(why) => why.clone(),
            }),
        }
    }
}

/// Returns the name of the entry of a PE by its number: `p3`.
pub fn numbered(pe: PeId) -> OsString {
    format!("p{}", pe.0).into()
}

#[derive(Debug, Default)]
pub struct Mapped {
    /// The tasks of all shards: by PE, or by name.
    pub tasks: Vec<ShardTask>,
    /// The scatter, if there was something to run.
    pub scatter: Option<Box<Outcome>>,
    /// The total time of the commands.
    pub running: Duration,
    /// The gather, if there was something to gather and no signal ended it.
    pub gather: Option<Box<Outcome>>,
    /// Whether the results that have arrived are in the output, or the reasons why not are known.
    pub is_gathered: bool,
    /// Retry reports of the scatter and of the gather.
    pub stories: [RetryReport; 2],
    /// The signal that ended the commands before all had run, or the gather.
    pub interrupted: Option<Interrupted>,
}

impl Mapped {
    /// Returns whether a signal is the reason why the command has not run to its end on a shard.
    pub fn is_as_interrupted(&self, task: &ShardTask) -> bool {
        let is_open = matches!(task.fate, CommandFate::Waiting | CommandFate::Killed(_));
        is_open && self.interrupted.is_some()
    }

    /// Returns whether every shard has its result, with all that the command wrote.
    pub fn is_complete(&self) -> bool {
        let is_whole = |task: &ShardTask| task.has_result() && task.not_taken().is_empty();
        self.tasks.iter().all(is_whole)
    }
}
