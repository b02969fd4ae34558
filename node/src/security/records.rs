//! Protection of records by TLS 1.3 (RFC 8446, section 5), with the keys that a handshake has produced.
//! A record is encrypted and decrypted where it is in a buffer: the TLS library's own connections copy it
//! three times more.

use std::ops::Range;

use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey,
};
use rustls::{ConnectionTrafficSecrets, Error, InvalidMessage, PeerMisbehaved};

/// Maximum length of a record's content.
pub const MAX_CONTENT_BYTES: usize = 1 << 14;

/// Length of a record's header: its type, a version, and the length of the rest.
pub const HEADER_BYTES: usize = 5;

/// Length of the authentication tag of all algorithms of TLS 1.3.
const TAG_BYTES: usize = 16;

/// Maximum number of bytes by which encryption may lengthen a record, by the standard.
const MAX_EXPANSION: usize = 256;

/// Number of bytes by which [`RecordKey::seal`] lengthens content: header, type of the content, tag.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + 1 + TAG_BYTES;

/// Number of bytes of a buffer that has room for any record.
pub const MAX_RECORD_BYTES: usize = HEADER_BYTES + MAX_CONTENT_BYTES + MAX_EXPANSION;

/// The type and version in the header of every encrypted record.
const PROTECTED: [u8; 3] = [ContentType::Data as u8, 3, 3];

/// The type of a record's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ContentType {
    /// The end of the connection, or an error.
    Alert = 21,
    /// A message of the handshake, after its end: an update of keys, or a ticket.
    Handshake = 22,
    /// Bytes of the connection's user.
    Data = 23,
}

/// A key for one direction of a connection, with the number of records that it has protected.
pub struct RecordKey {
    key: LessSafeKey,
    iv: [u8; NONCE_LEN],
    records: u64,
}

impl RecordKey {
    /// Creates it from the number of the next record and the secrets of a connection.
    ///
    /// # Errors
    ///
    /// Returns an error if the algorithm is not one of TLS 1.3.
    pub fn new((records, secrets): (u64, ConnectionTrafficSecrets)) -> Result<RecordKey, Error> {
        use ConnectionTrafficSecrets::{Aes128Gcm, Aes256Gcm, Chacha20Poly1305};
        let unknown = || Error::General("an algorithm that is not one of TLS 1.3".to_owned());
        let (algorithm, key, iv) = match &secrets {
            Aes128Gcm { key, iv } => (&AES_128_GCM, key, iv),
            Aes256Gcm { key, iv } => (&AES_256_GCM, key, iv),
            Chacha20Poly1305 { key, iv } => (&CHACHA20_POLY1305, key, iv),
            _ => return Err(unknown()),
        };
        let key = UnboundKey::new(algorithm, key.as_ref()).map_err(|_| unknown())?;
        Ok(RecordKey {
            key: LessSafeKey::new(key),
            iv: iv.as_ref().try_into().map_err(|_| unknown())?,
            records,
        })
    }

    pub fn records(&self) -> u64 {
        self.records
    }

    /// Returns the nonce of the next record, by section 5.3.
    fn next_nonce(&mut self) -> Nonce {
        let mut nonce = self.iv;
        let number = self.records.to_be_bytes();
        let last = &mut nonce[NONCE_LEN - number.len()..];
        last.iter_mut()
            .zip(number)
            .for_each(|(byte, of)| *byte ^= of);
        self.records += 1;
        Nonce::assume_unique_for_key(nonce)
    }

    /// Appends a record to `out`, whose content of at most [`MAX_CONTENT_BYTES`] `content` appends.
    pub fn seal(
        &mut self,
        kind: ContentType,
        out: &mut Vec<u8>,
        content: impl FnOnce(&mut Vec<u8>),
    ) {
        let header = out.len();
        out.extend([0; HEADER_BYTES]);
        content(out);
        out.push(kind as u8);
        let inner = header + HEADER_BYTES;
        let bytes = out.len() - inner + TAG_BYTES;
        debug_assert!(bytes <= MAX_CONTENT_BYTES + 1 + TAG_BYTES, "{bytes}");
        let [high, low] = (bytes as u16).to_be_bytes();
        let [kind, major, minor] = PROTECTED;
        let head = [kind, major, minor, high, low];
        out[header..inner].copy_from_slice(&head);
        let nonce = self.next_nonce();
        let sealed = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(head), &mut out[inner..]);
        out.extend(sealed.expect("a record is short").as_ref());
    }

    /// Decrypts the record at the start of `bytes`; returns its length, and the type and place of its
    /// content, or `None` if not all of it is there.
    ///
    /// # Errors
    ///
    /// Returns an error if the bytes are not a record that this connection's other end has encrypted as
    /// its next one.
    pub fn open(&mut self, bytes: &mut [u8]) -> Result<Option<Opened>, Error> {
        let Some((&mut head, rest)) = bytes.split_first_chunk_mut::<HEADER_BYTES>() else {
            return Ok(None);
        };
        let [kind, major, _, high, low] = head;
        if [kind, major] != PROTECTED[..2] {
            return Err(InvalidMessage::InvalidContentType.into());
        }
        let length = usize::from(u16::from_be_bytes([high, low]));
        if length > MAX_CONTENT_BYTES + MAX_EXPANSION {
            return Err(Error::PeerSentOversizedRecord);
        }
        let Some(record) = rest.get_mut(..length) else {
            return Ok(None);
        };
        let nonce = self.next_nonce();
        let opened = self.key.open_in_place(nonce, Aad::from(head), record);
        let inner = opened.map_err(|_| Error::DecryptError)?;
        // Zeros may follow the type.
        let type_at = inner.iter().rposition(|byte| *byte != 0);
        let type_at = type_at.ok_or(PeerMisbehaved::IllegalTlsInnerPlaintext)?;
        if type_at > MAX_CONTENT_BYTES {
            return Err(Error::PeerSentOversizedRecord);
        }
        let kind = match inner[type_at] {
            21 => ContentType::Alert,
            22 => ContentType::Handshake,
            23 => ContentType::Data,
            _ => return Err(InvalidMessage::InvalidContentType.into()),
        };
        Ok(Some(Opened {
            kind,
            content: HEADER_BYTES..HEADER_BYTES + type_at,
            bytes: HEADER_BYTES + length,
        }))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub kind: ContentType,
    /// The place of its content, from the start of its header.
    pub content: Range<usize>,
    /// The length of the record with its header.
    pub bytes: usize,
}
