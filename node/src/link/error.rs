//! Errors of the connection to a neighbour.

use std::io;
use std::net::SocketAddr;

use flitcast_proto::PeId;
use flitcast_proto::wire::WireError;
use thiserror::Error;

/// An error of the connection to a neighbour.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The connection was closed between frames.
    #[error("{peer} at {addr} closed the connection")]
    Closed {
        /// The neighbour.
        peer: PeId,
        /// The neighbour's address.
        addr: SocketAddr,
    },
    /// The connection was closed inside a frame.
    #[error("{peer} at {addr} closed the connection inside a frame, {got} of {expected} bytes")]
    Truncated {
        /// The neighbour.
        peer: PeId,
        /// The neighbour's address.
        addr: SocketAddr,
        /// Number of received bytes.
        got: usize,
        /// Length of the frame.
        expected: usize,
    },
    /// An error of the operating system.
    #[error("the connection to {peer} at {addr} failed: {source}")]
    Io {
        /// The neighbour.
        peer: PeId,
        /// The neighbour's address.
        addr: SocketAddr,
        /// The error.
        source: io::Error,
    },
    /// The neighbour's host does not answer, or there is no route to it.
    #[error("{peer} at {addr} cannot be reached any more: {source}")]
    Unreached {
        /// The neighbour.
        peer: PeId,
        /// The neighbour's address.
        addr: SocketAddr,
        /// The error.
        source: io::Error,
    },
    /// The received frame violates the protocol.
    #[error("from {peer} at {addr}: {source}")]
    Wire {
        /// The neighbour.
        peer: PeId,
        /// The neighbour's address.
        addr: SocketAddr,
        /// The violation.
        source: WireError,
    },
}

impl LinkError {
    /// Returns whether the neighbour's process has ended the connection; its host and its frames are
    /// valid.
    pub fn is_hung_up(&self) -> bool {
        match self {
            LinkError::Closed { .. } | LinkError::Truncated { .. } => true,
            LinkError::Io { source, .. } => {
                use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
                let kind = source.kind();
                matches!(kind, BrokenPipe | ConnectionReset | UnexpectedEof)
            }
            LinkError::Unreached { .. } | LinkError::Wire { .. } => false,
        }
    }

    /// Returns the neighbour.
    pub fn peer(&self) -> PeId {
        match self {
            LinkError::Closed { peer, .. }
            | LinkError::Truncated { peer, .. }
            | LinkError::Io { peer, .. }
            | LinkError::Unreached { peer, .. }
            | LinkError::Wire { peer, .. } => *peer,
        }
    }
}
