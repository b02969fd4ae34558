//! The digests of messages, computed while their bytes pass.

use std::collections::BTreeMap;
use std::fmt;

use twox_hash::XxHash3_128;

use crate::MessageId;
use crate::wire::flit::Digest;

/// The XXH3-128 hash of the bytes so far. All outgoing messages of a round share one, and all
/// incoming messages another, because an allocation for each takes longer than the hash of a short
/// message.
#[derive(Default)]
pub(super) struct Hash(XxHash3_128);

impl Hash {
    /// Starts the hash of another message.
    #[inline]
    pub(super) fn reset(&mut self) {
        self.0 = XxHash3_128::new();
    }

    #[inline]
    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    #[inline]
    pub(super) fn digest(&self) -> Digest {
        self.0.finish_128().to_be_bytes()
    }
}

/// Has the hash library detect the processor's instructions, which it does at its first long input and
/// takes 0.1 ms in a virtual machine.
pub fn prepare_hashes() {
    let mut hash = Hash::default();
    hash.update(&[0; 1024]);
    std::hint::black_box(hash.digest());
}

/// The hashes of the own messages, while their payload is sent.
#[derive(Debug, Default)]
pub(super) struct OwnHashes {
    /// Hash of the payload sent so far of the message `of`.
    hash: Hash,
    /// The message of `hash`, while more of it follows.
    of: Option<MessageId>,
    /// Number of hashed bytes of it. A neighbour that gets a part has all preceding parts, so these
    /// were sent before.
    bytes: u64,
    /// Other incomplete messages, with the number of hashed bytes and the hash.
    begun: BTreeMap<MessageId, (u64, Hash)>,
}

impl OwnHashes {
    /// Adds the payload at this offset of a message, unless the hash covers it already because it
    /// was sent to another neighbour.
    #[inline]
    pub(super) fn cover(&mut self, message: MessageId, offset: u64, payload: &[u8]) {
        self.turn_to(message);
        if offset == self.bytes {
            self.hash.update(payload);
            self.bytes += payload.len() as u64;
        }
    }

    /// Returns the digest of the message that was covered last.
    #[inline]
    pub(super) fn digest(&self) -> Digest {
        self.hash.digest()
    }

    /// Returns whether a part of a message was covered and more of it follows.
    #[inline]
    pub(super) fn has_begun(&self, message: MessageId) -> bool {
        self.of == Some(message) || self.begun.contains_key(&message)
    }

    /// Forgets a complete message.
    pub(super) fn end(&mut self, message: MessageId) {
        match self.of == Some(message) {
            true => self.of = None,
            false => drop(self.begun.remove(&message)),
        }
    }

    #[inline]
    fn turn_to(&mut self, message: MessageId) {
        if self.of == Some(message) {
            return;
        }
        if let Some(other) = self.of.replace(message) {
            let hash = std::mem::take(&mut self.hash);
            self.begun.insert(other, (self.bytes, hash));
        }
        match self.begun.remove(&message) {
            Some(begun) => (self.bytes, self.hash) = begun,
            None => {
                self.bytes = 0;
                self.hash.reset();
            }
        }
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash")
    }
}
