//! The reasons for an early end of a PE, and their consequences.

use std::io;
use std::net::SocketAddr;

use flitcast_proto::wire::control::{FromPe, ToPe};
use flitcast_proto::{PeId, RoundId};
use thiserror::Error;

use crate::channel::ChannelError;
use crate::limits::REPORTED_INPUT_ERRORS;
use crate::link::LinkError;
use crate::payload::PayloadError;
use crate::round::RoundError;
use crate::security::SecurityError;
use crate::system::sockets::is_closed;

/// The reason for an early end of a PE.
#[derive(Debug, Error)]
pub enum NodeError {
    #[error("cannot reach the coordinator at {0}: {1}")]
    Coordinator(SocketAddr, #[source] io::Error),
    /// The PE's own credentials are invalid.
    #[error(transparent)]
    Credentials(#[from] SecurityError),
    /// The coordinator's name cannot be resolved.
    #[error("{0}: {1}")]
    Lookup(String, #[source] io::Error),
    /// The coordinator at this address rejected this process for this reason.
    #[error("the coordinator at {0} refuses it: {1}")]
    Refused(SocketAddr, String),
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, #[source] io::Error),
    #[error("the channel to the coordinator: {0}")]
    Channel(#[from] ChannelError),
    #[error("the coordinator closed the channel")]
    Abandoned,
    /// A message of the coordinator that is not expected in this state of the PE.
    #[error("unexpected message of the coordinator, {1}: {0}")]
    Unexpected(String, &'static str),
    /// No coordinator listened, or the coordinator rejected a PE that wanted to join.
    #[error("{0}")]
    NotJoined(String),
    #[error("{0}")]
    NotAllowed(String),
    /// A neighbour cannot be reached: the parent, or another PE that this one calls.
    #[error("cannot reach {0} at {1}: {2}")]
    Neighbour(PeId, String, #[source] io::Error),
    /// Neighbours that should have called did not: children, and others.
    #[error("no connection from {}", list(.0))]
    MissingCallers(Vec<PeId>),
    #[error("{0} does not answer the probe of its edge")]
    SilentChild(PeId),
    /// A neighbour failed outside a round.
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("{}", lines(.0))]
    Payload(Vec<PayloadError>),
    /// The places where messages are to arrive cannot be examined.
    #[error(transparent)]
    Output(PayloadError),
    #[error(transparent)]
    Round(#[from] RoundError),
    /// The operating system refused a basic request.
    #[error("{0}: {1}")]
    Io(&'static str, #[source] io::Error),
}

fn list(pes: &[PeId]) -> String {
    let names: Vec<String> = pes.iter().map(PeId::to_string).collect();
    names.join(", ")
}

fn lines(errors: &[PayloadError]) -> String {
    let reported = errors.iter().take(REPORTED_INPUT_ERRORS);
    let reported = reported.map(PayloadError::to_string);
    let more = errors.len().saturating_sub(REPORTED_INPUT_ERRORS);
    let more = (more > 0).then(|| format!("and {more} more faults of this kind or another"));
    reported.chain(more).collect::<Vec<_>>().join("\n")
}

impl NodeError {
    /// Returns the error for a message of the coordinator that is not expected in this state.
    pub(crate) fn unexpected(command: &ToPe, when: &'static str) -> NodeError {
        NodeError::Unexpected(command.kind().to_owned(), when)
    }

    /// Returns a function for `map_err` that adds the request to an error of the operating system.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> NodeError {
        move |error| NodeError::Io(what, error)
    }

    /// Returns whether a new connection ended, as it may for a PE among very many clients of a
    /// listener.
    pub(crate) fn is_cut_off(&self) -> bool {
        match self {
            NodeError::Abandoned | NodeError::Link(LinkError::Closed(_)) => true,
            NodeError::Channel(ChannelError::Io(error))
            | NodeError::Coordinator(_, error)
            | NodeError::Neighbour(_, _, error)
            | NodeError::Link(LinkError::Io(_, error)) => is_closed(error),
            _ => false,
        }
    }

    /// Returns the kind of the error for metrics.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            NodeError::Coordinator(..)
            | NodeError::Lookup(..)
            | NodeError::Refused(..)
            | NodeError::Channel(_)
            | NodeError::Abandoned
            | NodeError::Credentials(_)
            | NodeError::NotJoined(_)
            | NodeError::NotAllowed(_)
            | NodeError::Unexpected(..) => "coordinator",
            NodeError::Neighbour(..)
            | NodeError::MissingCallers(_)
            | NodeError::SilentChild(_)
            | NodeError::Link(_) => "neighbour",
            NodeError::Payload(_) | NodeError::Output(_) => "payload",
            NodeError::Round(error) => error.kind(),
            NodeError::Listen(..) | NodeError::Io(..) => "system",
        }
    }

    /// Returns the message that reports this error of `pe` to the coordinator.
    pub(super) fn report(&self, pe: PeId, round: RoundId) -> FromPe {
        let (mut bad_input, mut output_stands, mut changed) = (false, false, Vec::new());
        match self {
            NodeError::Payload(faults) => {
                bad_input = !faults.iter().all(PayloadError::lacks_descriptors);
                changed.extend(faults.iter().filter_map(PayloadError::other_version));
            }
            NodeError::Round(RoundError::Payload { message, source }) => {
                let is_own = message.source == pe;
                bad_input = is_own && !source.lacks_descriptors();
                if is_own && matches!(source, PayloadError::Changed(_)) {
                    changed.push(message.id);
                }
                output_stands = matches!(source, PayloadError::Exists(_));
            }
            _ => {}
        }
        let hung_up = match self {
            NodeError::Round(RoundError::Link(error)) | NodeError::Link(error) => {
                error.is_hung_up()
            }
            _ => false,
        };
        FromPe::Fault {
            round,
            peer: self.peer(),
            reason: self.to_string(),
            bad_input,
            output_stands,
            hung_up,
            changed,
        }
    }

    fn peer(&self) -> Option<PeId> {
        match self {
            NodeError::Round(error) => error.peer(),
            NodeError::Neighbour(pe, ..) | NodeError::SilentChild(pe) => Some(*pe),
            NodeError::Link(error) => Some(error.peer()),
            NodeError::MissingCallers(missing) => missing.first().copied(),
            _ => None,
        }
    }
}
