//! Prefixes of messages made of files, to and from protobuf.

use crate::MessageId;
use crate::wire::codec::Wire;
use crate::wire::{WireError, pb};

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
