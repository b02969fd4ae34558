//! Errors of the connection to a neighbour.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use flitcast_proto::PeId;
use flitcast_proto::wire::WireError;
use thiserror::Error;

use crate::system::sockets::is_closed;

/// A neighbour with its address.
#[derive(Clone, Copy, Debug)]
pub struct Neighbour {
    pub peer: PeId,
    pub addr: SocketAddr,
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.peer, self.addr)
    }
}

/// An error of the connection to a neighbour.
#[derive(Debug, Error)]
pub enum LinkError {
    #[error("{0} closed the connection")]
    Closed(Neighbour),
    #[error("{0} closed the connection inside a frame, {1} of {2} bytes")]
    Truncated(Neighbour, usize, usize),
    #[error("the connection to {0} failed: {1}")]
    Io(Neighbour, #[source] io::Error),
    /// The neighbour's host does not answer, or there is no route to it.
    #[error("{0} cannot be reached any more: {1}")]
    Unreached(Neighbour, #[source] io::Error),
    /// The received frame violates the protocol.
    #[error("from {0}: {1}")]
    Wire(Neighbour, #[source] WireError),
}

impl LinkError {
    /// Returns whether the neighbour's process has ended the connection; its host and its frames are
    /// valid.
    pub fn is_hung_up(&self) -> bool {
        match self {
            LinkError::Closed(_) | LinkError::Truncated(..) => true,
            LinkError::Io(_, error) => is_closed(error),
            LinkError::Unreached(..) | LinkError::Wire(..) => false,
        }
    }

    pub fn peer(&self) -> PeId {
        match self {
            LinkError::Closed(at)
            | LinkError::Truncated(at, ..)
            | LinkError::Io(at, _)
            | LinkError::Unreached(at, _)
            | LinkError::Wire(at, _) => at.peer,
        }
    }
}
