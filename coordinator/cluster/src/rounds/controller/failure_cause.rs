//! The errors of rounds, and the PEs at fault.

use std::time::Duration;
use std::{fmt, io};

use flitcast_node::channel::ChannelError;
use flitcast_node::timeout_stream::IdleTimeout;
use flitcast_proto::round::ProtocolError;
use flitcast_proto::wire::control::{FromPe, Version};
use flitcast_proto::{DeliveryId, MessageId, PeId};
use thiserror::Error;

use crate::text::phrases::{self, names};

/// The first error of a run.
#[derive(Debug, Error)]
pub enum FailureCause {
    /// A signal ended the command.
    #[error("interrupted")]
    Interrupted,
    /// A PE has reported an error.
    #[error("{witness}: {reason}")]
    Fault {
        /// The PE that reported it.
        witness: PeId,
        /// The neighbour at fault according to the PE.
        blamed: Option<PeId>,
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
        "--output: these exist already, and differ from what is sent or from each other; move them away, or replace them with --force:\n    {}",
        .0.join("\n    ")
    )]
    OutputStands(Vec<String>),
    /// PEs whose messages do not fit on the file systems that they write, and the text.
    #[error("{1}")]
    NoRoom(Vec<PeId>, String),
    /// The channel of a PE has timed out.
    #[error("{0} {1}")]
    Lifeless(PeId, IdleTimeout),
    /// The round has stalled; the PE at fault may be known.
    #[error("{1}")]
    Stalled(Option<PeId>, String),
    /// Any other error of certain PEs, without which the round could have continued. The first
    /// text is its kind for counters.
    #[error("{2}")]
    OfPes(&'static str, Vec<PeId>, String),
    /// Any other error, which the exclusion of a PE would not avoid.
    #[error("{2}")]
    Other(&'static str, Option<PeId>, String),
}

/// A state machine refuses the schedule.
impl From<ProtocolError> for FailureCause {
    fn from(error: ProtocolError) -> FailureCause {
        let text = format!("the schedule contradicts itself: {error}");
        FailureCause::Other("schedule", None, text)
    }
}

impl FailureCause {
    /// Creates the error of a PE, without which the round could have continued.
    pub fn of_pe(kind: &'static str, pe: PeId, text: String) -> FailureCause {
        FailureCause::OfPes(kind, vec![pe], text)
    }

    /// Creates the error of a PE that breaks the protocol.
    pub fn protocol(pe: PeId, text: String) -> FailureCause {
        FailureCause::of_pe("protocol", pe, text)
    }

    /// Creates the error of a PE that does not answer any more, for an unknown reason.
    pub fn vanished(pe: PeId, how: &str) -> FailureCause {
        FailureCause::of_pe("vanished", pe, format!("{pe} {how}"))
    }

    /// Creates the error of PEs that did not answer in time.
    pub fn silent(pes: Vec<PeId>, limit: Duration, doing: &str) -> FailureCause {
        let (silent, seconds) = (names(&pes), limit.as_secs());
        let text = format!("{silent} did not answer within {seconds} s, {doing}");
        FailureCause::OfPes("silent", pes, text)
    }

    /// Returns whether this is an error, not an intended end.
    pub fn is_failure(&self) -> bool {
        !matches!(self, FailureCause::Interrupted | FailureCause::Holds(_))
    }

    /// Returns the kind of the error for counters.
    pub fn kind(&self) -> &'static str {
        match self {
            FailureCause::Interrupted => "interrupted",
            FailureCause::Holds(_) => "compared",
            FailureCause::Fault {
                bad_input: true, ..
            }
            | FailureCause::Versions(..) => "input",
            FailureCause::Fault {
                output_stands: true,
                ..
            }
            | FailureCause::OutputStands(_)
            | FailureCause::NoRoom(..) => "output",
            FailureCause::Fault { .. } => "fault",
            FailureCause::Lifeless(..) => "silent",
            FailureCause::Stalled(..) => "stalled",
            FailureCause::OfPes(kind, ..) | FailureCause::Other(kind, ..) => kind,
        }
    }

    /// Returns the PE at fault, if there is one.
    pub fn pe(&self) -> Option<PeId> {
        match self {
            FailureCause::Lifeless(pe, _) => Some(*pe),
            FailureCause::Fault {
                witness, blamed, ..
            } => Some(blamed.unwrap_or(*witness)),
            FailureCause::OfPes(_, pes, _) => pes.first().copied(),
            FailureCause::Stalled(pe, _) | FailureCause::Other(_, pe, _) => *pe,
            FailureCause::Interrupted
            | FailureCause::Holds(_)
            | FailureCause::OutputStands(_)
            | FailureCause::NoRoom(..)
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

    /// Returns whether the PE at fault still runs, because it reported an error itself, such as a
    /// full disk.
    pub fn is_faulty_pe_alive(&self) -> bool {
        let is_own = matches!(
            self,
            FailureCause::Fault { blamed: None, .. } | FailureCause::NoRoom(..)
        );
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
            FailureCause::OfPes(_, pes, _) | FailureCause::NoRoom(pes, _) => pes.clone(),
            FailureCause::Other(..) => Vec::new(),
            _ => self.pe().into_iter().collect(),
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

impl PeLoss {
    /// Returns the loss that the end of a channel shows.
    pub fn of_channel(end: Option<ChannelError>) -> PeLoss {
        let Some(error) = end else {
            return PeLoss::Closed;
        };
        let ChannelError::Io(failure) = &error else {
            return PeLoss::Broken(error.to_string());
        };
        match (IdleTimeout::of(failure), failure.kind()) {
            (Some(lifeless), _) => PeLoss::Lifeless(lifeless),
            // The kernel resets the connection of a process that ends before it has read everything.
            (None, io::ErrorKind::ConnectionReset) => PeLoss::Closed,
            (None, _) => PeLoss::Broken(error.to_string()),
        }
    }
}

/// A predicate of the PE, with the last lines on stderr of its process.
impl fmt::Display for PeLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeLoss::Exited { how, last_words } => {
                let output = phrases::last_words("; it last printed: ", last_words);
                write!(f, "{how}{output}")
            }
            PeLoss::Lifeless(lifeless) => write!(f, "is gone: its channel broke: {lifeless}"),
            PeLoss::Broken(why) => write!(f, "is gone: its channel broke: {why}"),
            PeLoss::Closed => f.write_str(
                "is gone: its process has ended, or was told to leave by a signal or by `flitcast down`",
            ),
        }
    }
}

/// Creates the error for the loss of a PE.
pub fn cause_of_loss(pe: PeId, lost: PeLoss) -> FailureCause {
    match lost {
        PeLoss::Exited { .. } => FailureCause::of_pe("died", pe, format!("{pe} {lost}")),
        _ => FailureCause::vanished(pe, &lost.to_string()),
    }
}

/// Creates the error for a message that is not expected now.
pub fn out_of_turn(pe: PeId, reply: &FromPe) -> FailureCause {
    FailureCause::protocol(pe, format!("{pe}: unexpected message: {}", reply.kind()))
}
