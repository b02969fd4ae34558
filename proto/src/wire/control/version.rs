//! Versions of messages made of files, to and from protobuf.

use crate::MessageId;
use crate::wire::codec::record;
use crate::wire::flit::Digest;

/// A version of a message made of files, as its source was measured and its destinations have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// The message.
    pub message: MessageId,
    /// The message's length in bytes.
    pub bytes: u64,
    /// Hash of what the file system reports of the source's files; equal states have equal content.
    pub state: u64,
    /// XXH3-128 of the whole message; `None` until the message has been delivered to a PE.
    pub digest: Option<Digest>,
}

record! { Version = Version { message, bytes, state, digest } }
