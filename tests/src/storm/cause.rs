//! The errors that stop a simulated PE.

use flitcast_proto::PeId;
use flitcast_proto::round::ProtocolError;
use flitcast_proto::wire::WireError;
use thiserror::Error;

/// An error that stops a PE; `peer` is the neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Cause {
    /// A connection ended between frames.
    #[error("{peer} closed the connection")]
    Closed { peer: PeId },
    /// A connection ended inside a frame.
    #[error("{peer} closed the connection inside a frame, {got} of {expected} bytes")]
    Truncated {
        peer: PeId,
        /// Bytes that have arrived.
        got: usize,
        /// Bytes that the frame has.
        expected: usize,
    },
    /// The neighbour's host answers no keepalive.
    #[error("{peer} cannot be reached any more")]
    Unreached { peer: PeId },
    /// Bytes that are not a valid frame.
    #[error("from {peer}: {error}")]
    Wire { peer: PeId, error: WireError },
    /// A violation of the protocol, or a damaged message.
    #[error(transparent)]
    Fault(#[from] ProtocolError),
    #[error("the round requests another poll without end")]
    Spins,
    #[error("unexpected message of the coordinator: {0}")]
    Unexpected(String),
}

impl Cause {
    /// Returns the neighbour at fault, as a node reports it.
    pub(super) fn peer(&self) -> Option<PeId> {
        match self {
            Cause::Closed { peer }
            | Cause::Truncated { peer, .. }
            | Cause::Unreached { peer }
            | Cause::Wire { peer, .. } => Some(*peer),
            Cause::Fault(fault) => fault.peer(),
            Cause::Spins | Cause::Unexpected(_) => None,
        }
    }
}
