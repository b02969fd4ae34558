//! Why a PE cannot go on, as it sees it.

use flitcast_proto::PeId;
use flitcast_proto::round::RoundFault;
use flitcast_proto::wire::WireError;
use thiserror::Error;

/// Why a PE cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Cause {
    /// A connection ended between frames.
    #[error("{peer} closed the connection")]
    Closed {
        /// The neighbour.
        peer: PeId,
    },
    /// A connection ended inside a frame.
    #[error("{peer} closed the connection inside a frame, {got} of {expected} bytes")]
    Truncated {
        /// The neighbour.
        peer: PeId,
        /// Bytes that came.
        got: usize,
        /// Bytes that the frame has.
        expected: usize,
    },
    /// Its host answers no keepalive.
    #[error("{peer} cannot be reached any more")]
    Unreached {
        /// The neighbour.
        peer: PeId,
    },
    /// Bytes that are no frame.
    #[error("from {peer}: {error}")]
    Wire {
        /// The neighbour.
        peer: PeId,
        /// What is wrong with them.
        error: WireError,
    },
    /// What came breaks the protocol, or is not what was sent.
    #[error(transparent)]
    Fault(#[from] RoundFault),
    /// The round wants to be asked again at once, for ever.
    #[error("the round is due for ever")]
    Spins,
    /// The coordinator said what has no place.
    #[error("the coordinator said {0}")]
    Unexpected(String),
}

impl Cause {
    /// The neighbour that is blamed, as a node tells it.
    pub fn peer(&self) -> Option<PeId> {
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
