//! Compressed flits on an edge: the frame of a flit, with its head and digest, as a block.
//!
//! Each edge compresses for itself, so rounds, relays and digests have plain flits only. A compressed
//! frame is not accepted if it has more bytes than a flit of the edge can have.

use bytes::Bytes;
use lz4_flex::block;
use prost::Message as _;
use prost::encoding::WireType;

use super::codec::Wire;
use super::flit::is_flit;
use super::{WireError, pb};
use crate::Compression;

/// Field number of `proto/flitcast.proto`.
const FRAME_PACKED: u8 = 11;

/// Returns whether a frame's body is a compressed flit.
#[inline]
pub fn is_packed(body: &[u8]) -> bool {
    body.first() == Some(&(FRAME_PACKED << 3 | WireType::LengthDelimited as u8))
}

/// Compresses the body of a flit's frame; returns `None` if the result would have more than `most` bytes,
/// without those of the frame, or if this program cannot compress.
pub fn pack(compression: Compression, plain: &[u8], most: usize) -> Option<Vec<u8>> {
    let block = match compression {
        Compression::Never => None,
        Compression::Lz4 => Some(block::compress(plain)),
        Compression::Zstd => zstd::compress(plain),
    };
    let block = block.filter(|block| block.len() <= most)?;
    Some(encoded(compression, plain.len(), block))
}

/// Returns the body of the frame with the block of `plain_bytes` bytes.
pub fn encoded(compression: Compression, plain_bytes: usize, block: Vec<u8>) -> Vec<u8> {
    let packed = pb::Packed {
        plain_bytes: plain_bytes as u32,
        block: Bytes::from(block),
        compression: compression.put(),
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
    let bytes = match Compression::parse(packed.compression)? {
        Compression::Never => None,
        Compression::Lz4 => block::decompress_into(&packed.block, out).ok(),
        Compression::Zstd => zstd::decompress(&packed.block, out),
    };
    match bytes {
        Some(bytes) if bytes == plain_bytes => Ok(()),
        _ => Err(malformed()),
    }
}

/// Zstandard. Each thread has one context for each direction, since creating one takes longer than
/// compressing a flit.
#[cfg(feature = "zstd")]
mod zstd {
    use std::cell::RefCell;

    use zstd_safe::{CCtx, DCtx, compress_bound};

    /// Level of the compression: of those that are quicker, none saves as much in its time.
    const LEVEL: i32 = 1;

    thread_local! {
        static COMPRESSOR: RefCell<CCtx<'static>> = RefCell::new(CCtx::create());
        static DECOMPRESSOR: RefCell<DCtx<'static>> = RefCell::new(DCtx::create());
    }

    pub fn compress(plain: &[u8]) -> Option<Vec<u8>> {
        let mut block = Vec::with_capacity(compress_bound(plain.len()));
        let compressed = COMPRESSOR.with_borrow_mut(|it| it.compress(&mut block, plain, LEVEL));
        compressed.ok().map(|_| block)
    }

    pub fn decompress(block: &[u8], out: &mut [u8]) -> Option<usize> {
        DECOMPRESSOR.with_borrow_mut(|it| it.decompress(out, block).ok())
    }
}

/// A program without Zstandard.
#[cfg(not(feature = "zstd"))]
mod zstd {
    pub fn compress(_plain: &[u8]) -> Option<Vec<u8>> {
        None
    }

    pub fn decompress(_block: &[u8], _out: &mut [u8]) -> Option<usize> {
        None
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

    /// The formats that this program was built with.
    fn formats() -> impl Iterator<Item = Compression> {
        let all = [Compression::Lz4, Compression::Zstd];
        all.into_iter().filter(|format| format.is_available())
    }

    fn block(format: Compression, plain: &[u8]) -> Vec<u8> {
        match format {
            Compression::Zstd => zstd::compress(plain).unwrap(),
            _ => block::compress(plain),
        }
    }

    fn packed(format: Compression, plain: &[u8], plain_bytes: usize) -> Vec<u8> {
        encoded(format, plain_bytes, block(format, plain))
    }

    #[test]
    fn a_flit_comes_out_as_it_went_in() {
        for format in formats() {
            let plain = flit(&[7; 3000]);
            let body = packed(format, &plain, plain.len());
            assert!(is_packed(&body) && body.len() < 100);
            assert!(!is_packed(&plain) && !is_packed(&[]));
            let mut out = vec![9; 10];
            unpack(&body, plain.len(), &mut out).unwrap();
            assert_eq!(out, plain);
        }
    }

    #[test]
    fn data_that_does_not_shrink_is_not_compressed() {
        let mut seeds = crate::seeded::SplitMix64::new(7);
        let plain: Vec<u8> = (0..60_000).map(|_| seeds.below(256) as u8).collect();
        for format in formats() {
            assert_eq!(pack(format, &plain, plain.len() / 8 * 7), None);
            assert!(pack(format, &[0; 60_000], 300).is_some());
        }
        assert_eq!(pack(Compression::Never, &[0; 60_000], 300), None);
    }

    /// A block of a few bytes can declare, or have, a million times as many.
    #[test]
    fn no_frame_takes_more_memory_than_a_flit() {
        let plain = flit(&[7; 3000]);
        for format in formats() {
            for declared in [plain.len() + 1, u32::MAX as usize] {
                let body = packed(format, &plain, declared);
                let mut out = Vec::new();
                let refused = unpack(&body, plain.len(), &mut out);
                let too_long = WireError::TooLong {
                    length: declared as u64,
                    limit: plain.len() as u64,
                };
                assert_eq!((refused, out.capacity()), (Err(too_long), 0));
            }
            let is_refused = |body: &[u8]| unpack(body, 1 << 20, &mut Vec::new()).is_err();
            for declared in [plain.len() - 1, 0] {
                assert!(is_refused(&packed(format, &plain, declared)));
            }
            // Neither a flit nor a frame.
            for plain in [&b"control"[..], &packed(format, &plain, plain.len()), b""] {
                assert!(is_refused(&packed(format, plain, plain.len())));
            }
            // In no format.
            let block = block(format, &plain);
            assert!(is_refused(&encoded(Compression::Never, plain.len(), block)));
            assert!(is_refused(&plain));
        }
    }
}
