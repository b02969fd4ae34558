//! The reasons for an early end of a PE, and their consequences.

use std::io;
use std::net::SocketAddr;

use flitcast_proto::items::Message;
use flitcast_proto::wire::control::ToPe;
use flitcast_proto::{MessageId, PeId};
use thiserror::Error;

use crate::channel::ChannelError;
use crate::limits::REPORTED_INPUT_ERRORS;
use crate::link::LinkError;
use crate::payload::PayloadError;
use crate::round::RoundError;
use crate::security::SecurityError;

/// The reason for an early end of a PE.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The coordinator cannot be reached.
    #[error("cannot reach the coordinator at {addr}: {source}")]
    Coordinator {
        /// The coordinator's address.
        addr: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// The PE's own credentials are invalid.
    #[error(transparent)]
    Credentials(#[from] SecurityError),
    /// The coordinator's name cannot be resolved.
    #[error("{name}: {source}")]
    Lookup {
        /// The name as given.
        name: String,
        /// The reason.
        source: io::Error,
    },
    /// The coordinator rejected this process.
    #[error("the coordinator at {addr} refuses it: {reason}")]
    Refused {
        /// The coordinator's address.
        addr: SocketAddr,
        /// The reason.
        reason: String,
    },
    /// The PE cannot listen on its address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// The control channel broke.
    #[error("the channel to the coordinator: {0}")]
    Channel(#[from] ChannelError),
    /// The coordinator has ended.
    #[error("the coordinator closed the channel")]
    Abandoned,
    /// A message of the coordinator that is not expected now.
    #[error("unexpected message of the coordinator, {when}: {kind}")]
    Unexpected {
        /// The message.
        kind: String,
        /// The PE's state at that time.
        when: &'static str,
    },
    /// The coordinator lacks a permission.
    #[error("{0}")]
    NotAllowed(String),
    /// A neighbour cannot be reached: the parent, or another PE that this one calls.
    #[error("cannot reach {neighbour} at {addr}: {source}")]
    Neighbour {
        /// The neighbour.
        neighbour: PeId,
        /// The neighbour's address.
        addr: String,
        /// The reason.
        source: io::Error,
    },
    /// Neighbours that should have called did not: children, and others.
    #[error("no connection from {}", list(.missing))]
    MissingCallers {
        /// The missing neighbours.
        missing: Vec<PeId>,
    },
    /// A child does not answer.
    #[error("{child} does not answer the probe of its edge")]
    SilentChild {
        /// The child.
        child: PeId,
    },
    /// A neighbour failed outside a round.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The messages cannot be read.
    #[error("{}", lines(.0))]
    Payload(Vec<PayloadError>),
    /// The places where messages are to arrive cannot be examined.
    #[error(transparent)]
    Output(PayloadError),
    /// The round failed.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// The operating system refused a basic request.
    #[error("{what}: {source}")]
    Io {
        /// The request.
        what: &'static str,
        /// The reason.
        source: io::Error,
    },
}

fn list(pes: &[PeId]) -> String {
    pes.iter()
        .map(PeId::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

fn lines(errors: &[PayloadError]) -> String {
    let told = errors
        .iter()
        .take(REPORTED_INPUT_ERRORS)
        .map(PayloadError::to_string);
    let more = errors.len().saturating_sub(REPORTED_INPUT_ERRORS);
    let more = (more > 0).then(|| format!("and {more} more faults of this kind or another"));
    told.chain(more).collect::<Vec<_>>().join("\n")
}

impl NodeError {
    /// Returns the error for a message of the coordinator that is not expected in this state.
    pub(crate) fn unexpected(word: &ToPe, when: &'static str) -> NodeError {
        let kind = word.kind().to_owned();
        NodeError::Unexpected { kind, when }
    }

    /// Returns a function for `map_err` that adds the request to an error of the operating system.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> NodeError {
        move |source| NodeError::Io { what, source }
    }

    /// Returns whether a new connection ended, as it may for a PE among very many clients of a
    /// listener.
    pub(crate) fn is_cut_off(&self) -> bool {
        let is_end = |error: &io::Error| {
            use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
            matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof)
        };
        match self {
            NodeError::Abandoned | NodeError::Link(LinkError::Closed { .. }) => true,
            NodeError::Channel(ChannelError::Io(error))
            | NodeError::Coordinator { source: error, .. }
            | NodeError::Neighbour { source: error, .. }
            | NodeError::Link(LinkError::Io { source: error, .. }) => is_end(error),
            _ => false,
        }
    }

    /// Returns the kind of the error for metrics.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            NodeError::Coordinator { .. }
            | NodeError::Lookup { .. }
            | NodeError::Refused { .. }
            | NodeError::Channel(_)
            | NodeError::Abandoned
            | NodeError::Credentials(_)
            | NodeError::NotAllowed(_)
            | NodeError::Unexpected { .. } => "coordinator",
            NodeError::Neighbour { .. }
            | NodeError::MissingCallers { .. }
            | NodeError::SilentChild { .. }
            | NodeError::Link(_) => "neighbour",
            NodeError::Payload(_) | NodeError::Output(_) => "payload",
            NodeError::Round(error) => error.kind(),
            NodeError::Listen { .. } | NodeError::Io { .. } => "system",
        }
    }

    /// Returns whether the cause is a message that `pe`, its source, cannot read.
    pub(super) fn is_bad_input(&self, pe: PeId) -> bool {
        let unread = |message: &Message| message.source == pe;
        match self {
            NodeError::Payload(faults) => !faults.iter().all(PayloadError::lacks_descriptors),
            NodeError::Round(RoundError::Payload { message, source }) => {
                unread(message) && !source.lacks_descriptors()
            }
            _ => false,
        }
    }

    /// Returns the messages, or parts of them, of which `pe` is the source and has another version
    /// than the run began with.
    pub(super) fn other_versions(&self, pe: PeId) -> Vec<MessageId> {
        match self {
            NodeError::Payload(faults) => {
                let changed = faults.iter().filter_map(PayloadError::other_version);
                changed.collect()
            }
            NodeError::Round(RoundError::Payload {
                message,
                source: PayloadError::Changed { .. },
            }) if message.source == pe => vec![message.id],
            _ => Vec::new(),
        }
    }

    /// Returns whether the cause is an existing entry where a message is to become visible.
    pub(super) fn is_standing_output(&self) -> bool {
        matches!(
            self,
            NodeError::Round(RoundError::Payload {
                source: PayloadError::Exists { .. },
                ..
            })
        )
    }

    /// Returns whether the cause is that a neighbour ended the connection; that neighbour may
    /// report a better reason.
    pub(super) fn is_hung_up(&self) -> bool {
        match self {
            NodeError::Round(RoundError::Link(error)) | NodeError::Link(error) => {
                error.is_hung_up()
            }
            _ => false,
        }
    }

    pub(super) fn peer(&self) -> Option<PeId> {
        match self {
            NodeError::Round(error) => error.peer(),
            NodeError::Neighbour { neighbour, .. } => Some(*neighbour),
            NodeError::SilentChild { child } => Some(*child),
            NodeError::Link(error) => Some(error.peer()),
            NodeError::MissingCallers { missing } => missing.first().copied(),
            _ => None,
        }
    }
}
