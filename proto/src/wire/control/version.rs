//! Versions of messages made of files, to and from protobuf.

use bytes::Bytes;

use crate::MessageId;
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

impl Version {
    pub(super) fn put(self) -> pb::Version {
        pb::Version {
            message: self.message.0,
            bytes: self.bytes,
            state: self.state,
            digest: put_digest(self.digest.as_ref()),
        }
    }

    pub(super) fn parse(version: &pb::Version) -> Result<Version, WireError> {
        Ok(Version {
            message: MessageId(version.message),
            bytes: version.bytes,
            state: version.state,
            digest: parse_digest(&version.digest)?,
        })
    }
}

fn put_digest(digest: Option<&Digest>) -> Bytes {
    digest.map_or(Bytes::new(), |digest| Bytes::copy_from_slice(digest))
}

fn parse_digest(bytes: &[u8]) -> Result<Option<Digest>, WireError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let digest = bytes.try_into();
    let malformed = |_| WireError::malformed("a digest that is not 16 bytes long");
    digest.map(Some).map_err(malformed)
}

/// Concatenates digests.
pub(super) fn put_digests<'a>(digests: impl Iterator<Item = &'a Digest>) -> Bytes {
    digests.flatten().copied().collect()
}

pub(super) fn parse_digests(bytes: &[u8]) -> Result<Vec<Digest>, WireError> {
    let (digests, rest) = bytes.as_chunks();
    match rest {
        [] => Ok(digests.to_vec()),
        _ => Err(WireError::malformed("digests that are not 16 bytes long")),
    }
}
