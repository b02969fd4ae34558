//! Prefixes of messages made of files, to and from protobuf.

use crate::MessageId;
use crate::wire::WireError;

/// The first bytes of a message made of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The message.
    pub message: MessageId,
    /// The length of the prefix in bytes.
    pub bytes: u64,
}

/// Returns the messages and the lengths.
pub(super) fn put_prefixes(prefixes: &[Prefix]) -> (Vec<u64>, Vec<u64>) {
    let pairs = prefixes.iter().map(|it| (it.message.0, it.bytes));
    pairs.unzip()
}

pub(super) fn parse_prefixes(messages: &[u64], bytes: &[u64]) -> Result<Vec<Prefix>, WireError> {
    if messages.len() != bytes.len() {
        return Err(WireError::malformed("not one length for each prefix"));
    }
    let pairs = messages.iter().zip(bytes);
    let prefix = |(message, bytes): (&u64, &u64)| Prefix {
        message: MessageId(*message),
        bytes: *bytes,
    };
    Ok(pairs.map(prefix).collect())
}
