//! The digest of a message, computed while its bytes pass.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use crate::wire::flit::Digest;

/// The XXH3-128 hash of the bytes so far. All outgoing messages of a round share one, and all
/// incoming messages another, because an allocation for each takes longer than the hash of a short
/// message.
#[derive(Default)]
pub(super) struct Hash(Xxh3);

impl Hash {
    /// Starts the hash of another message.
    pub(super) fn reset(&mut self) {
        self.0.reset();
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(super) fn digest(&self) -> Digest {
        self.0.digest128().to_be_bytes()
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hash")
    }
}
