//! Why a PE ends before it is told to, and what follows from that.

use std::io;
use std::net::SocketAddr;

use flitcast_proto::PeId;
use flitcast_proto::items::Message;
use thiserror::Error;

use crate::channel::ChannelError;
use crate::link::LinkError;
use crate::payload::PayloadError;
use crate::round::RoundError;
use crate::security::SecurityError;

/// Why a PE ended before it was told to.
#[derive(Debug, Error)]
pub enum NodeError {
    /// The coordinator cannot be reached.
    #[error("cannot reach the coordinator at {addr}: {source}")]
    Coordinator {
        /// Where it should be.
        addr: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// What it shows is not good.
    #[error(transparent)]
    Credentials(#[from] SecurityError),
    /// Its name means nothing.
    #[error("{name}: {source}")]
    Lookup {
        /// As it was given.
        name: String,
        /// Why not.
        source: io::Error,
    },
    /// It will not have this process.
    #[error("the coordinator at {addr} refuses it: {reason}")]
    Refused {
        /// Where it is.
        addr: SocketAddr,
        /// Why.
        reason: String,
    },
    /// There is no listening where it should.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The control channel broke.
    #[error("the channel to the coordinator: {0}")]
    Channel(#[from] ChannelError),
    /// The coordinator is gone.
    #[error("the coordinator closed the channel")]
    Abandoned,
    /// The coordinator said something that has no place now.
    #[error("the coordinator said {said} {when}")]
    Unexpected {
        /// What.
        said: String,
        /// When.
        when: &'static str,
    },
    /// The coordinator may not have it do this.
    #[error("{0}")]
    NotAllowed(String),
    /// A neighbour cannot be reached: the parent, or who else was to be called.
    #[error("cannot reach {neighbour} at {addr}: {source}")]
    Neighbour {
        /// Who.
        neighbour: PeId,
        /// Where it should be.
        addr: String,
        /// Why not.
        source: io::Error,
    },
    /// Not all came that were to call: children, and others.
    #[error("no connection from {}", list(.missing))]
    MissingCallers {
        /// Who is missing.
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
    /// Where messages are to arrive cannot be looked at.
    #[error(transparent)]
    Output(PayloadError),
    /// The round failed.
    #[error(transparent)]
    Round(#[from] RoundError),
    /// The operating system refused something basic.
    #[error("{what}: {source}")]
    Io {
        /// What.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

fn list(pes: &[PeId]) -> String {
    pes.iter()
        .map(PeId::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Of the faults of an input, those that are told: nobody mends more at a time, and with their
/// paths, of 16 KiB each when all of it has to be escaped, they fit a frame many times.
const TOLD: usize = 100;

fn lines(errors: &[PayloadError]) -> String {
    let told = errors.iter().take(TOLD).map(PayloadError::to_string);
    let more = errors.len().saturating_sub(TOLD);
    let more = (more > 0).then(|| format!("and {more} more faults of this kind or another"));
    told.chain(more).collect::<Vec<_>>().join("\n")
}

impl NodeError {
    /// Whether a connection ended that was just made: in a crowd of strangers, who belongs
    /// here may be turned away with them.
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

    /// Which kind of error it is, for who counts them.
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

    /// Whether the cause is a message that `pe`, its source, cannot read.
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

    /// Whether the cause is that something stands where a message is to become visible.
    pub(super) fn is_standing_output(&self) -> bool {
        matches!(
            self,
            NodeError::Round(RoundError::Payload {
                source: PayloadError::Exists { .. },
                ..
            })
        )
    }

    /// Whether the cause is that a neighbour ended the connection, who may know better why.
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
