//! The secret that the processes of one launch share.

use std::fmt;

use bytes::Bytes;

use super::WireError;
use super::codec::Wire;

/// The proof that a process belongs to this launch, received from the process that started it. It
/// protects connections that no other user can intercept; over a network, certificates are used as
/// well.
#[derive(Clone, Copy)]
pub struct Secret([u8; Secret::BYTES]);

impl Secret {
    /// Length in bytes: 256 bits cannot be guessed.
    pub const BYTES: usize = 32;

    /// Creates a secret from random bytes.
    pub fn new(drawn: [u8; Secret::BYTES]) -> Secret {
        Secret(drawn)
    }
}

impl Wire for Secret {
    type Pb = Bytes;

    fn put(&self) -> Bytes {
        Bytes::copy_from_slice(&self.0)
    }

    fn parse(pb: Bytes) -> Result<Secret, WireError> {
        let malformed = |_| WireError::malformed("a secret has 32 bytes");
        (&pb[..]).try_into().map(Secret).map_err(malformed)
    }
}

/// Takes the same time for any position of the first difference, so that a secret cannot be found
/// byte by byte.
impl PartialEq for Secret {
    fn eq(&self, other: &Secret) -> bool {
        let bytes = self.0.iter().zip(other.0);
        let differences = bytes.fold(0, |found, (ours, theirs)| found | (ours ^ theirs));
        std::hint::black_box(differences) == 0
    }
}

impl Eq for Secret {}

/// Omits the secret, because other users may read logs.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_difference_counts_and_nothing_is_printed() {
        let secret = Secret::new([7; Secret::BYTES]);
        assert_eq!(secret, Secret::new([7; Secret::BYTES]));
        for place in 0..Secret::BYTES {
            let mut bytes = [7; Secret::BYTES];
            bytes[place] ^= 0x80;
            assert_ne!(secret, Secret::new(bytes), "byte {place}");
        }
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert!(Secret::parse(Bytes::from_static(&[7; 31])).is_err());
        assert!(Secret::parse(Bytes::new()).is_err());
    }
}
