//! The frame of a flit. The payload is its last field, so the prefix is written before payload
//! bytes that are not moved, and a relay forwards frames unchanged.

use std::ops::Range;

use prost::Message as _;
use prost::encoding::{
    WireType, decode_key, decode_varint, encode_key, encode_varint, encoded_len_varint, key_len,
    skip_field,
};

use super::codec::Wire as _;
use super::{WireError, pb};
use crate::RoundId;
use crate::items::{Message, MessageFault};

/// XXH3-128 of a whole message, big-endian.
pub type Digest = [u8; 16];

/// Field numbers of `proto/flitcast.proto`.
const FRAME_FLIT: u32 = 15;
const FLIT_HEAD: u32 = 1;
const FLIT_DIGEST: u32 = 2;
const FLIT_PAYLOAD: u32 = 15;

/// The content of a flit's frame besides its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flit {
    /// Round and message, in the first flit of a message.
    pub head: Option<(RoundId, Message)>,
    /// Digest, in the last flit of a message.
    pub digest: Option<Digest>,
    /// Position of the payload in the frame's body.
    pub payload: Range<usize>,
}

impl Flit {
    /// Returns the number of bytes that remain after this flit, if `left` bytes remained before.
    ///
    /// # Errors
    ///
    /// Returns an error if there is more than the message's head declares, an empty flit, or a digest in
    /// a flit that is not the last. A duplicate or lost flit is detected this way at once.
    #[inline]
    pub fn rest(&self, left: u64) -> Result<u64, MessageFault> {
        let len = self.payload.len() as u64;
        match left.checked_sub(len) {
            Some(left) if len > 0 && self.digest.is_some() == (left == 0) => Ok(left),
            Some(_) if len > 0 => Err(MessageFault::Torn),
            _ => Err(MessageFault::Overrun),
        }
    }
}

/// Returns whether a frame's body is a flit.
#[inline]
pub fn is_flit(body: &[u8]) -> bool {
    body.first() == Some(&((FRAME_FLIT as u8) << 3 | WireType::LengthDelimited as u8))
}

/// Appends everything of a flit's frame before its `payload_bytes` bytes of payload, including the
/// length prefix.
pub fn put_prefix(
    head: Option<(RoundId, Message)>,
    digest: Option<&Digest>,
    payload_bytes: usize,
    out: &mut Vec<u8>,
) {
    let head = head.map(|(round, message)| pb::Head {
        round: round.0,
        message: Some(message.put()),
    });
    let of_head = head
        .as_ref()
        .map_or(0, |head| field_bytes(FLIT_HEAD, head.encoded_len()));
    let of_digest = digest.map_or(0, |digest| field_bytes(FLIT_DIGEST, digest.len()));
    let flit_bytes = of_head + of_digest + field_bytes(FLIT_PAYLOAD, payload_bytes);
    let length = field_bytes(FRAME_FLIT, flit_bytes) as u32;

    out.reserve(super::MAX_FLIT_PREFIX);
    out.extend_from_slice(&length.to_be_bytes());
    put_key(FRAME_FLIT, flit_bytes, out);
    if let Some(head) = head {
        put_key(FLIT_HEAD, head.encoded_len(), out);
        head.encode_raw(out);
    }
    if let Some(digest) = digest {
        put_key(FLIT_DIGEST, digest.len(), out);
        out.extend_from_slice(digest);
    }
    put_key(FLIT_PAYLOAD, payload_bytes, out);
}

/// Appends the key and the length of a field of `bytes` bytes.
fn put_key(field: u32, bytes: usize, out: &mut Vec<u8>) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint(bytes as u64, out);
}

/// Returns the size of a field of `bytes` bytes with its key and length.
fn field_bytes(field: u32, bytes: usize) -> usize {
    key_len(field) + encoded_len_varint(bytes as u64) + bytes
}

/// Parses a flit's frame. Unknown fields are skipped; the payload must come last.
#[inline]
pub fn parse(body: &[u8]) -> Result<Flit, WireError> {
    let mut rest = body;
    let (number, wire_type) = decode_key(&mut rest)?;
    if (number, wire_type) != (FRAME_FLIT, WireType::LengthDelimited) {
        return Err(WireError::malformed("this frame is no flit"));
    }
    if decode_varint(&mut rest)? != rest.len() as u64 {
        return Err(WireError::malformed("a flit does not fill its frame"));
    }
    let mut head = None;
    let mut digest = None;
    while !rest.is_empty() {
        let (number, wire_type) = decode_key(&mut rest)?;
        if wire_type != WireType::LengthDelimited
            || !matches!(number, FLIT_HEAD | FLIT_DIGEST | FLIT_PAYLOAD)
        {
            skip_field(wire_type, number, &mut rest, Default::default())?;
            continue;
        }
        let length = decode_varint(&mut rest)?;
        let Some((field, after)) = usize::try_from(length)
            .ok()
            .and_then(|n| rest.split_at_checked(n))
        else {
            return Err(WireError::malformed(
                "a field of a flit is longer than the flit",
            ));
        };
        rest = after;
        match number {
            FLIT_HEAD => head = Some(pb::Head::decode(field)?),
            FLIT_DIGEST => {
                let bytes = Digest::try_from(field);
                digest = Some(bytes.map_err(|_| WireError::malformed("a digest has 16 bytes"))?);
            }
            _ if rest.is_empty() => {
                return Ok(Flit {
                    head: head.map(read_head).transpose()?,
                    digest,
                    payload: body.len() - field.len()..body.len(),
                });
            }
            _ => {
                return Err(WireError::malformed(
                    "the payload of a flit must be its last field",
                ));
            }
        }
    }
    // protobuf omits an empty last field.
    Ok(Flit {
        head: head.map(read_head).transpose()?,
        digest,
        payload: body.len()..body.len(),
    })
}

/// Reads a head; if it occurs twice, the last one counts.
fn read_head(head: pb::Head) -> Result<(RoundId, Message), WireError> {
    let message = head.message;
    let message = message.ok_or_else(|| WireError::malformed("a head without a message"))?;
    Ok((RoundId(head.round), Message::parse(message)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::items::Destination;
    use crate::{MessageId, PeId};

    #[test]
    fn the_longest_prefix_fits_its_limit() {
        let widest = Message {
            id: MessageId(u64::MAX),
            source: PeId(u32::MAX),
            destination: Destination::One(PeId(u32::MAX)),
            bytes: u64::MAX,
        };
        let head = (RoundId(u64::MAX), widest);
        let mut out = Vec::new();
        let payload = super::super::MAX_FLIT_BYTES as usize;
        put_prefix(Some(head), Some(&[0xff; 16]), payload, &mut out);
        let sealed = out.len() + super::super::seal::SEAL_BYTES;
        assert!(sealed <= super::super::MAX_FLIT_PREFIX, "{sealed}");
    }

    #[test]
    fn the_digest_is_in_the_last_flit_and_there_alone() {
        let flit = |bytes: usize, digest: bool| Flit {
            head: None,
            digest: digest.then_some([7; 16]),
            payload: 0..bytes,
        };
        assert_eq!(flit(4, false).rest(10), Ok(6));
        assert_eq!(flit(6, true).rest(6), Ok(0));
        let torn = Err(MessageFault::Torn);
        assert_eq!(flit(4, true).rest(10), torn);
        assert_eq!(flit(6, false).rest(6), torn);
        let overrun = Err(MessageFault::Overrun);
        assert_eq!(flit(7, true).rest(6), overrun);
        assert_eq!(flit(0, false).rest(6), overrun);
    }
}
