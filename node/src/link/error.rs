//! Why a neighbour cannot be heard or reached any more.

use std::io;
use std::net::SocketAddr;

use flitcast_proto::PeId;
use flitcast_proto::wire::WireError;
use thiserror::Error;

/// A neighbour cannot be heard or reached any more.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The connection was closed between frames.
    #[error("{peer} at {addr} closed the connection")]
    Closed {
        /// The neighbour.
        peer: PeId,
        /// Its address.
        addr: SocketAddr,
    },
    /// The connection was closed inside a frame.
    #[error("{peer} at {addr} closed the connection inside a frame, {got} of {expected} bytes")]
    Truncated {
        /// The neighbour.
        peer: PeId,
        /// Its address.
        addr: SocketAddr,
        /// Bytes that came.
        got: usize,
        /// Bytes that the frame has.
        expected: usize,
    },
    /// The operating system says so.
    #[error("the connection to {peer} at {addr} failed: {source}")]
    Io {
        /// The neighbour.
        peer: PeId,
        /// Its address.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// Its host does not answer, or there is no way to it.
    #[error("{peer} at {addr} cannot be reached any more: {source}")]
    Unreached {
        /// The neighbour.
        peer: PeId,
        /// Its address.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// What came is no frame of the protocol.
    #[error("from {peer} at {addr}: {source}")]
    Wire {
        /// The neighbour.
        peer: PeId,
        /// Its address.
        addr: SocketAddr,
        /// Why.
        source: WireError,
    },
}

impl LinkError {
    /// Whether the neighbour has ended the connection, rather than its host or what came.
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

    /// The neighbour.
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
