//! Versions and prefixes of messages made of files, to and from protobuf.

use bytes::Bytes;

use crate::MessageId;
use crate::wire::codec::{Wire, record};
use crate::wire::flit::Digest;
use crate::wire::{WireError, pb};

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

/// The first bytes of a message made of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The message.
    pub message: MessageId,
    /// The length of the prefix in bytes.
    pub bytes: u64,
}

impl Wire for Vec<Prefix> {
    type Pb = pb::CheckPrefixes;

    fn put(&self) -> pb::CheckPrefixes {
        let pairs = self.iter().map(|it| (it.message.0, it.bytes));
        let (messages, bytes) = pairs.unzip();
        pb::CheckPrefixes { messages, bytes }
    }

    fn parse(pb: pb::CheckPrefixes) -> Result<Vec<Prefix>, WireError> {
        let pairs = pairs::<MessageId>(pb.messages, pb.bytes)?.into_iter();
        Ok(pairs
            .map(|(message, bytes)| Prefix { message, bytes })
            .collect())
    }
}

/// Parses the ids of messages or deliveries, and the length of the prefix of each.
pub(super) fn pairs<T: Wire>(ids: Vec<T::Pb>, bytes: Vec<u64>) -> Result<Vec<(T, u64)>, WireError> {
    if ids.len() != bytes.len() {
        return Err(WireError::malformed("not one length for each prefix"));
    }
    Ok(Vec::parse(ids)?.into_iter().zip(bytes).collect())
}
