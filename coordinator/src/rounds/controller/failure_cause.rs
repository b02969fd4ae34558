//! The errors of rounds, and the PEs at fault.

use std::time::Duration;

use flitcast_node::timeout_stream::IdleTimeout;
use flitcast_plan::calibration::fit::FitError;
use flitcast_proto::wire::WireError;
use flitcast_proto::wire::control::{FromPe, Version};
use flitcast_proto::{DeliveryId, MessageId, PeId};
use thiserror::Error;

use crate::options::order::OrderError;
use crate::text::words::names;

/// The first error of a run.
#[derive(Debug, Error)]
pub enum FailureCause {
    /// A signal ended the command.
    #[error("interrupted")]
    Interrupted,
    /// The process of a PE has ended: its exit, and its last lines on stderr.
    #[error("{0} {1}{2}")]
    Died(PeId, String, String),
    /// A PE has reported an error.
    #[error("{witness}: {reason}")]
    Fault {
        /// The PE that reported it.
        witness: PeId,
        /// The neighbour at fault according to the PE.
        blamed: Option<PeId>,
        /// The reason.
        reason: String,
        /// Whether the PE's input cannot be read.
        bad_input: bool,
        /// Whether an entry was created at the destination of a message.
        output_stands: bool,
        /// Whether the neighbour at fault has closed the connection, and so may report a better
        /// reason.
        hung_up: bool,
        /// Messages, or parts of them, of which the PE has another version than at the start of the
        /// run.
        changed: Vec<MessageId>,
    },
    /// The destinations of a message have several versions of it, which the text lists.
    #[error("{1}")]
    Versions(MessageId, String),
    /// Deliveries that may be complete: their destinations have these versions, which the sources
    /// are yet to be compared with.
    #[error("what is in the output is compared with what is sent")]
    Holds(Vec<(DeliveryId, Version)>),
    /// Existing entries at destinations of messages that are not to be replaced.
    #[error(
        "--output: these are there already, and differ from what is sent or from each other; move them away, or replace them with --force:\n    {}",
        .0.join("\n    ")
    )]
    OutputStands(Vec<String>),
    /// A given order does not name all messages.
    #[error("--order: {0}")]
    Order(OrderError),
    /// A PE does not answer any more, for an unknown reason.
    #[error("{0} {1}")]
    Vanished(PeId, String),
    /// PEs did not answer in time.
    #[error("{} did not answer within {} s, {doing}", names(.silent), limit.as_secs())]
    Silent {
        /// The PEs.
        silent: Vec<PeId>,
        /// The time limit.
        limit: Duration,
        /// The activity of these PEs.
        doing: &'static str,
    },
    /// The channel of a PE has timed out.
    #[error("{0} {1}")]
    Lifeless(PeId, IdleTimeout),
    /// The round has stalled; the PE at fault may be known.
    #[error("{1}")]
    Stalled(Option<PeId>, String),
    /// A PE supports no common version of the protocol.
    #[error("{0}: {1}")]
    Incompatible(PeId, WireError),
    /// A state machine refuses the schedule.
    #[error("the schedule contradicts itself: {0}")]
    Schedule(#[from] flitcast_proto::round::ProtocolError),
    /// The schedule of a PE does not fit into a message.
    #[error(
        "the {what} message for {pe} would have {length} bytes, the limit is {limit}: the schedule \
         has too many crossings there. Use fewer PEs, a tree in which {pe} has fewer neighbours, or \
         another --algorithm"
    )]
    TooLong {
        /// The PE.
        pe: PeId,
        /// The kind of message.
        what: &'static str,
        /// The length in bytes.
        length: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A PE has sent a message of a kind that is not expected now.
    #[error("{0}: unexpected message: {1}")]
    OutOfTurn(PeId, &'static str),
    /// A PE has registered an invalid address.
    #[error("{0} reported the listen address `{1}`, which is not HOST:PORT")]
    NoPort(PeId, String),
    /// The measurements of an edge fit no link.
    #[error("the edge to {0} could not be measured: {1}")]
    Unmeasured(PeId, FitError),
    /// The measurements of an edge do not determine the offset of two clocks.
    #[error("the clock of {0} could not be compared with its parent's")]
    ClockNotComparable(PeId),
}

impl FailureCause {
    /// Returns whether this is an error, not an intended end.
    pub fn is_failure(&self) -> bool {
        !matches!(self, FailureCause::Interrupted | FailureCause::Holds(_))
    }

    /// Returns the kind of the error for counters.
    pub fn kind(&self) -> &'static str {
        match self {
            FailureCause::Interrupted => "interrupted",
            FailureCause::Holds(_) => "compared",
            FailureCause::Died(..) => "died",
            FailureCause::Fault {
                bad_input: true, ..
            } => "input",
            FailureCause::Fault {
                output_stands: true,
                ..
            }
            | FailureCause::OutputStands(_) => "output",
            FailureCause::Fault { .. } => "fault",
            FailureCause::Versions(..) | FailureCause::Order(_) => "input",
            FailureCause::Vanished(..) => "vanished",
            FailureCause::Silent { .. } | FailureCause::Lifeless(..) => "silent",
            FailureCause::Stalled(..) => "stalled",
            FailureCause::Incompatible(..)
            | FailureCause::OutOfTurn(..)
            | FailureCause::NoPort(..) => "protocol",
            FailureCause::Schedule(_) | FailureCause::TooLong { .. } => "schedule",
            FailureCause::Unmeasured(..) | FailureCause::ClockNotComparable(_) => "measurement",
        }
    }

    /// Returns the PE at fault, if there is one.
    pub fn pe(&self) -> Option<PeId> {
        match self {
            FailureCause::Died(pe, ..)
            | FailureCause::Vanished(pe, _)
            | FailureCause::Lifeless(pe, _)
            | FailureCause::Incompatible(pe, _)
            | FailureCause::OutOfTurn(pe, _)
            | FailureCause::NoPort(pe, _)
            | FailureCause::Unmeasured(pe, _)
            | FailureCause::ClockNotComparable(pe) => Some(*pe),
            FailureCause::Fault {
                witness, blamed, ..
            } => Some(blamed.unwrap_or(*witness)),
            FailureCause::Silent { silent, .. } => silent.first().copied(),
            FailureCause::Stalled(pe, _) => *pe,
            FailureCause::Interrupted
            | FailureCause::Holds(_)
            | FailureCause::Schedule(_)
            | FailureCause::TooLong { .. }
            | FailureCause::OutputStands(_)
            | FailureCause::Order(_)
            | FailureCause::Versions(..) => None,
        }
    }

    /// Returns the messages, or parts of them, that have another version than the run began with.
    pub fn other_versions(&self) -> Vec<MessageId> {
        match self {
            FailureCause::Fault { changed, .. } => changed.clone(),
            FailureCause::Versions(message, _) => vec![*message],
            _ => Vec::new(),
        }
    }
}

impl FailureCause {
    /// Returns whether the PE at fault still runs, because it reported an error itself, such as a
    /// full disk.
    pub fn culprit_lives(&self) -> bool {
        let is_own = matches!(self, FailureCause::Fault { blamed: None, .. });
        is_own && !self.failed_pes().is_empty()
    }

    /// Returns the PEs without which the round could have continued, apart from their messages.
    /// There are none for errors that this would not avoid: an unreadable input, an existing
    /// output, an edge that cannot be measured.
    pub fn failed_pes(&self) -> Vec<PeId> {
        match self {
            FailureCause::Fault {
                bad_input,
                output_stands,
                ..
            } if *bad_input || *output_stands => Vec::new(),
            FailureCause::Silent { silent, .. } => silent.clone(),
            FailureCause::Died(..)
            | FailureCause::Fault { .. }
            | FailureCause::Vanished(..)
            | FailureCause::Lifeless(..)
            | FailureCause::Stalled(..)
            | FailureCause::Incompatible(..)
            | FailureCause::OutOfTurn(..)
            | FailureCause::NoPort(..) => self.pe().into_iter().collect(),
            FailureCause::Interrupted
            | FailureCause::Holds(_)
            | FailureCause::OutputStands(_)
            | FailureCause::Order(_)
            | FailureCause::Versions(..)
            | FailureCause::Schedule(_)
            | FailureCause::TooLong { .. }
            | FailureCause::Unmeasured(..)
            | FailureCause::ClockNotComparable(_) => Vec::new(),
        }
    }
}

/// The loss of a PE or its channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeLoss {
    /// The process has ended.
    Exited {
        /// The exit, as a predicate of the PE.
        how: String,
        /// The last lines on stderr.
        last_words: Vec<String>,
    },
    /// The channel has timed out.
    Lifeless(IdleTimeout),
    /// The channel has broken, for this reason.
    Broken(String),
    /// The channel was closed without a message.
    Closed,
}

/// Creates the error for a process that has ended, with its last lines on stderr.
pub fn died(pe: PeId, how: String, last_words: &[String]) -> FailureCause {
    let said = match last_words.is_empty() {
        true => String::new(),
        false => format!("; its last words: {}", last_words.join(" / ")),
    };
    FailureCause::Died(pe, how, said)
}

/// The reason for a closed channel of a PE that has joined.
pub const LEFT: &str =
    "its process has ended, or was told to leave by a signal or by `flitcast down`";

/// Creates the error for the end of the channel of a PE that has joined, the only sign of its
/// death.
pub fn gone(pe: PeId, lost: PeLoss) -> FailureCause {
    let broke = |why: String| format!("is gone: its channel broke: {why}");
    match lost {
        PeLoss::Exited { how, last_words } => died(pe, how, &last_words),
        PeLoss::Lifeless(lifeless) => FailureCause::Vanished(pe, broke(lifeless.to_string())),
        PeLoss::Broken(why) => FailureCause::Vanished(pe, broke(why)),
        PeLoss::Closed => FailureCause::Vanished(pe, format!("is gone: {LEFT}")),
    }
}

/// Creates the error for a message that is not expected now.
pub fn out_of_turn(pe: PeId, word: &FromPe) -> FailureCause {
    FailureCause::OutOfTurn(pe, word.kind())
}
