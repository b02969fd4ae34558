//! Compressed flits on an edge: the frame of a flit, with its head and digest, as a block.
//!
//! Each edge compresses for itself, so rounds, relays and digests have plain flits only. A compressed
//! frame is not accepted if it has more bytes than a flit of the edge can have.

use bytes::Bytes;
use lz4_flex::block;
use prost::Message as _;
use prost::encoding::WireType;

use super::flit::is_flit;
use super::{WireError, pb};

/// Field number of `proto/flitcast.proto`.
const FRAME_PACKED: u8 = 11;

/// Returns whether a frame's body is a compressed flit.
#[inline]
pub fn is_packed(body: &[u8]) -> bool {
    body.first() == Some(&(FRAME_PACKED << 3 | WireType::LengthDelimited as u8))
}

/// Compresses the body of a flit's frame; returns `None` if the result would have more than `most` bytes,
/// without those of the frame.
pub fn pack(plain: &[u8], most: usize) -> Option<Vec<u8>> {
    let block = block::compress(plain);
    (block.len() <= most).then(|| encoded(plain.len(), block))
}

/// Returns the body of the frame with the block of `plain_bytes` bytes.
pub fn encoded(plain_bytes: usize, block: Vec<u8>) -> Vec<u8> {
    let packed = pb::Packed {
        plain_bytes: plain_bytes as u32,
        block: Bytes::from(block),
    };
    let frame = pb::Frame {
        kind: Some(pb::frame::Kind::Packed(packed)),
        ..pb::Frame::default()
    };
    frame.encode_to_vec()
}

/// Decompresses the body of a frame into `out`: the body of a flit of at most `limit` bytes.
///
/// # Errors
///
/// Returns an error if the frame or its block is malformed, or if it is longer.
pub fn unpack(body: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    unpack_any(body, limit, out)?;
    match is_flit(out) {
        true => Ok(()),
        false => Err(malformed()),
    }
}

fn malformed() -> WireError {
    WireError::malformed("a compressed frame that is not a flit")
}

/// Decompresses as [`unpack`] does, whatever the content is.
pub fn unpack_any(body: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let Some(pb::frame::Kind::Packed(packed)) = pb::Frame::decode(body)?.kind else {
        return Err(malformed());
    };
    let plain_bytes = packed.plain_bytes as usize;
    if plain_bytes > limit {
        return Err(WireError::TooLong {
            length: plain_bytes as u64,
            limit: limit as u64,
        });
    }
    out.resize(plain_bytes, 0);
    match block::decompress_into(&packed.block, out) {
        Ok(bytes) if bytes == plain_bytes => Ok(()),
        _ => Err(malformed()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::flit::put_prefix;
    use super::*;
    use crate::wire::LENGTH_BYTES;

    fn flit(payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::new();
        put_prefix(None, Some(&[1; 16]), payload.len(), &mut frame);
        frame.extend_from_slice(payload);
        frame.split_off(LENGTH_BYTES)
    }

    fn packed(plain: &[u8], plain_bytes: usize) -> Vec<u8> {
        encoded(plain_bytes, block::compress(plain))
    }

    #[test]
    fn unpacking_restores_a_flit() {
        let plain = flit(&[7; 3000]);
        let body = packed(&plain, plain.len());
        assert!(is_packed(&body) && body.len() < 100);
        assert!(!is_packed(&plain) && !is_packed(&[]));
        let mut out = vec![9; 10];
        unpack(&body, plain.len(), &mut out).unwrap();
        assert_eq!(out, plain);
    }

    #[test]
    fn incompressible_flits_are_not_compressed() {
        let mut seeds = crate::seeded::SplitMix64::new(7);
        let plain: Vec<u8> = (0..60_000).map(|_| seeds.below(256) as u8).collect();
        assert_eq!(pack(&plain, plain.len() / 8 * 7), None);
        assert!(pack(&[0; 60_000], 300).is_some());
    }

    /// A block of a few bytes can declare, or have, a million times as many.
    #[test]
    fn no_frame_takes_more_memory_than_a_flit() {
        let plain = flit(&[7; 3000]);
        for declared in [plain.len() + 1, u32::MAX as usize] {
            let body = packed(&plain, declared);
            let mut out = Vec::new();
            let refused = unpack(&body, plain.len(), &mut out);
            let too_long = WireError::TooLong {
                length: declared as u64,
                limit: plain.len() as u64,
            };
            assert_eq!((refused, out.capacity()), (Err(too_long), 0));
        }
        for declared in [plain.len() - 1, 0] {
            assert!(unpack(&packed(&plain, declared), plain.len(), &mut Vec::new()).is_err());
        }
        // Neither a flit nor a frame.
        for plain in [&b"control"[..], &packed(&plain, plain.len()), b""] {
            let body = packed(plain, plain.len());
            assert!(unpack(&body, 1 << 20, &mut Vec::new()).is_err());
        }
        assert!(unpack(&plain, 1 << 20, &mut Vec::new()).is_err());
    }
}
