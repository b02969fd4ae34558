//! The data that a process receives on standard input to become part of a cluster. Other users
//! could read arguments, and child processes would inherit the environment.

use std::fmt;

use bytes::Bytes;
use prost::Message as _;

use super::codec::{Wire, record};
use super::{LENGTH_BYTES, MAX_ADMISSION, WireError, frame_length, pb, put_frame};

/// The admission of a process to a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admission {
    pub cluster: u64,
    pub secret: Secret,
    /// Credentials to authenticate itself and others; `None` if connections are unencrypted, or if
    /// the process has its own credentials.
    pub credentials: Option<IssuedCredentials>,
}

/// A certificate issued for one PE, with its key and its authority.
#[derive(Clone, PartialEq, Eq)]
pub struct IssuedCredentials {
    /// Certificate of the issuing authority, the same for all: DER.
    pub authority: Bytes,
    /// The certificate: DER.
    pub certificate: Bytes,
    /// Private key of the certificate: PKCS #8, DER.
    pub key: Bytes,
}

/// Omits the key.
impl fmt::Debug for IssuedCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IssuedCredentials(..)")
    }
}

impl Admission {
    /// Encodes the admission as a frame.
    pub fn written(&self) -> Vec<u8> {
        let mut frame = Vec::new();
        put_frame(&self.put(), &mut frame);
        frame
    }

    /// Parses a frame, which must be the whole input.
    pub fn parse(frame: &[u8]) -> Result<Admission, WireError> {
        let Some((prefix, body)) = frame.split_first_chunk::<LENGTH_BYTES>() else {
            return Err(WireError::malformed("nothing is there"));
        };
        if frame_length(*prefix, MAX_ADMISSION)? != body.len() {
            return Err(WireError::malformed("it is cut off, or more than one"));
        }
        Wire::parse(pb::Admission::decode(body)?)
    }
}

record! { Admission = Admission { cluster, secret, credentials } }
record! { IssuedCredentials = Credentials { authority, certificate, key } }

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
    fn what_is_written_is_read_and_nothing_less() {
        let issued = IssuedCredentials {
            authority: vec![1; 500].into(),
            certificate: vec![2; 600].into(),
            key: vec![3; 130].into(),
        };
        for credentials in [None, Some(issued)] {
            let admission = Admission {
                cluster: 0xfeed,
                secret: Secret::new([3; Secret::BYTES]),
                credentials,
            };
            let frame = admission.written();
            assert_eq!(Admission::parse(&frame), Ok(admission));
            for cut in 0..frame.len() {
                assert!(Admission::parse(&frame[..cut]).is_err(), "{cut} bytes");
            }
            assert!(Admission::parse(&[&frame[..], b"x"].concat()).is_err());
        }
        let long = (MAX_ADMISSION as u32 + 1).to_be_bytes();
        assert!(Admission::parse(&long).is_err());
    }

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
