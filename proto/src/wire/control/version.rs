//! Versions, prefixes and present files of messages made of files, to and from protobuf.

use bytes::Bytes;

use crate::wire::codec::{Wire, ensure, record};
use crate::wire::flit::Digest;
use crate::wire::{MAX_DELIVERIES, WireError, pb};
use crate::{DeliveryId, MessageId};

/// A version of a message made of files, as its source was measured and its destinations have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    pub message: MessageId,
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
    pub message: MessageId,
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
    ensure(ids.len() == bytes.len(), "not one length for each prefix")?;
    Ok(Vec::parse(ids)?.into_iter().zip(bytes).collect())
}

/// An entry at a destination that a message replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryListing {
    pub delivery: DeliveryId,
    /// Digest of the entry's files and folders without their content, or with it if that is compared.
    pub digest: Digest,
    /// A hash of each file that need not be sent again.
    pub files: Vec<u64>,
}

/// Parses the entries that messages replace.
pub(super) fn parse_present(
    deliveries: Vec<u32>,
    digests: Bytes,
    counts: &[u64],
    files: &[u64],
) -> Result<Vec<EntryListing>, WireError> {
    let digests = Vec::<Digest>::parse(digests)?;
    let lengths = [deliveries.len(), digests.len(), counts.len()];
    ensure(lengths == [lengths[0]; 3], "not one listing for each entry")?;
    let listings = deliveries.into_iter().zip(digests);
    let listings = listings.zip(groups(counts, files)?);
    Ok(listings
        .map(|((delivery, digest), files)| EntryListing {
            delivery: DeliveryId(delivery),
            digest,
            files,
        })
        .collect())
}

/// Divides a list into groups with these numbers of elements.
fn groups(counts: &[u64], mut all: &[u64]) -> Result<Vec<Vec<u64>>, WireError> {
    let malformed = || WireError::malformed("not as many files as were counted");
    let mut groups = Vec::new();
    for count in counts {
        let count = usize::try_from(*count).map_err(|_| malformed())?;
        let (group, rest) = all.split_at_checked(count).ok_or_else(malformed)?;
        groups.push(group.to_vec());
        all = rest;
    }
    all.is_empty().then_some(groups).ok_or_else(malformed)
}

/// Files that all destinations of a message have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageFiles {
    pub message: MessageId,
    /// The hashes of the files, as in [`EntryListing`].
    pub files: Vec<u64>,
}

impl Wire for Vec<MessageFiles> {
    type Pb = pb::SkipFiles;

    fn put(&self) -> pb::SkipFiles {
        pb::SkipFiles {
            messages: self.iter().map(|it| it.message.0).collect(),
            counts: self.iter().map(|it| it.files.len() as u64).collect(),
            files: self.iter().flat_map(|it| &it.files).copied().collect(),
        }
    }

    fn parse(pb: pb::SkipFiles) -> Result<Vec<MessageFiles>, WireError> {
        let count = pb.messages.len();
        let is_each = pb.counts.len() == count && count <= MAX_DELIVERIES;
        ensure(is_each, "not one list of files for each message")?;
        let messages = pb.messages.into_iter().map(MessageId);
        let messages = messages.zip(groups(&pb.counts, &pb.files)?);
        Ok(messages
            .map(|(message, files)| MessageFiles { message, files })
            .collect())
    }
}

/// The files of a message that are not sent because its destinations have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SkippedFiles {
    /// The length of the rest of the message in bytes.
    pub message_bytes: u64,
    pub files: u64,
    /// The length of the files in bytes.
    pub file_bytes: u64,
}

impl Wire for Vec<SkippedFiles> {
    type Pb = pb::FilesSkipped;

    fn put(&self) -> pb::FilesSkipped {
        pb::FilesSkipped {
            message_bytes: self.iter().map(|it| it.message_bytes).collect(),
            files: self.iter().map(|it| it.files).collect(),
            file_bytes: self.iter().map(|it| it.file_bytes).collect(),
        }
    }

    fn parse(pb: pb::FilesSkipped) -> Result<Vec<SkippedFiles>, WireError> {
        let lengths = [pb.message_bytes.len(), pb.files.len(), pb.file_bytes.len()];
        ensure(lengths == [lengths[0]; 3], "not as many files as messages")?;
        let skipped = pb
            .message_bytes
            .into_iter()
            .zip(pb.files)
            .zip(pb.file_bytes);
        Ok(skipped
            .map(|((message_bytes, files), file_bytes)| SkippedFiles {
                message_bytes,
                files,
                file_bytes,
            })
            .collect())
    }
}
