//! The digest of a message while its bytes pass.

use std::fmt;

use xxhash_rust::xxh3::Xxh3;

use crate::wire::flit::Digest;

/// XXH3-128 of the bytes so far. One is for all messages of a round that go out, and one for all
/// that come in: to allocate one for each takes longer than to hash a short message.
#[derive(Default)]
pub(super) struct Hash(Xxh3);

impl Hash {
    /// Another message begins.
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
