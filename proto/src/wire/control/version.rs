//! Versions of messages made of files, to and from protobuf.

use bytes::Bytes;

use crate::MessageId;
use crate::wire::WireError;
use crate::wire::codec::{Wire, record};
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

/// A digest that may be missing: its bytes, or none.
impl Wire for Option<Digest> {
    type Pb = Bytes;

    fn put(&self) -> Bytes {
        self.as_ref()
            .map_or(Bytes::new(), |it| Bytes::copy_from_slice(it))
    }

    fn parse(pb: Bytes) -> Result<Option<Digest>, WireError> {
        if pb.is_empty() {
            return Ok(None);
        }
        let malformed = |_| WireError::malformed("a digest that is not 16 bytes long");
        Digest::try_from(&pb[..]).map(Some).map_err(malformed)
    }
}

/// Digests one after the other.
impl Wire for Vec<Digest> {
    type Pb = Bytes;

    fn put(&self) -> Bytes {
        self.iter().flatten().copied().collect()
    }

    fn parse(pb: Bytes) -> Result<Vec<Digest>, WireError> {
        match pb.as_chunks() {
            (digests, []) => Ok(digests.to_vec()),
            _ => Err(WireError::malformed("digests that are not 16 bytes long")),
        }
    }
}
