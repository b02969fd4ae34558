//! The data that a process receives on standard input to become part of a cluster. Other users
//! could read arguments, and child processes would inherit the environment.

use std::fmt;

use bytes::Bytes;
use prost::Message as _;

use super::codec::{Wire, record};
use super::{LENGTH_BYTES, MAX_ADMISSION, Secret, WireError, frame_length, pb, put_frame};

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
}
