//! Compression of flits in the LZ4 block format, which compresses faster than a link of 1 Gbit/s
//! carries.
//!
//! A block is a sequence of literals and of matches with what comes at most 64 KiB before. Blocks of
//! other processes are not trusted: a block never decompresses to more than the buffer that the reader
//! has for a frame.

/// Minimum length of a match.
const MIN_MATCH: usize = 4;
/// Number of bytes at the end that are always literals, and of those before which the last match begins.
const LAST_LITERALS: usize = 5;
const LAST_MATCH: usize = 12;
/// Maximum distance of a match.
const MAX_DISTANCE: usize = 0xffff;
/// Number of places that the compressor remembers.
const TABLE_BITS: u32 = 12;
/// Greatest length in the four bits of a token; more follows in further bytes.
const NIBBLE: usize = 15;

/// A compressor, which keeps the memory for its table.
#[derive(Debug)]
pub struct Compressor {
    /// The last place of each four bytes, by their hash.
    table: Box<[u32]>,
}

impl Default for Compressor {
    fn default() -> Compressor {
        Compressor {
            table: vec![0; 1 << TABLE_BITS].into_boxed_slice(),
        }
    }
}

impl Compressor {
    /// Appends the block of `plain` to `out`. Returns whether it is shorter than `most` bytes;
    /// otherwise `out` has a part of it.
    pub fn compress(&mut self, plain: &[u8], most: usize, out: &mut Vec<u8>) -> bool {
        let limit = out.len() + most;
        let (mut at, mut anchor, mut misses) = (0, 0, 0);
        self.table.fill(0);
        while at + LAST_MATCH < plain.len() {
            let word = word_at(plain, at);
            let hash = (word.wrapping_mul(2_654_435_761) >> (32 - TABLE_BITS)) as usize;
            // At the first byte, the zero of an unused entry is the byte itself.
            let before = self.table[hash] as usize;
            self.table[hash] = at as u32;
            if before >= at || at - before > MAX_DISTANCE || word_at(plain, before) != word {
                // Through data without matches it goes faster and faster.
                at += 1 + (misses >> 6);
                misses += 1;
                continue;
            }
            let end = plain.len() - LAST_LITERALS;
            let same = plain[at..end].iter().zip(&plain[before..]);
            let length = same.take_while(|(one, other)| one == other).count();
            put_sequence(&plain[anchor..at], Some((at - before, length)), out);
            if out.len() >= limit {
                return false;
            }
            at += length;
            (anchor, misses) = (at, 0);
        }
        put_sequence(&plain[anchor..], None, out);
        out.len() < limit
    }
}

fn word_at(bytes: &[u8], at: usize) -> u32 {
    let word = bytes[at..].first_chunk();
    word.map_or(0, |word| u32::from_le_bytes(*word))
}

/// Appends literals and the match behind them: its distance and length.
fn put_sequence(literals: &[u8], matched: Option<(usize, usize)>, out: &mut Vec<u8>) {
    let (distance, more) =
        matched.map_or((0, 0), |(distance, length)| (distance, length - MIN_MATCH));
    let token = literals.len().min(NIBBLE) << 4 | more.min(NIBBLE);
    out.push(token as u8);
    put_rest(literals.len(), out);
    out.extend_from_slice(literals);
    if matched.is_some() {
        out.extend_from_slice(&(distance as u16).to_le_bytes());
        put_rest(more, out);
    }
}

/// Appends what a length has beyond the four bits of the token.
fn put_rest(length: usize, out: &mut Vec<u8>) {
    if let Some(mut rest) = length.checked_sub(NIBBLE) {
        while rest >= 255 {
            out.push(255);
            rest -= 255;
        }
        out.push(rest as u8);
    }
}

/// Decompresses a block into `out`, and returns the number of bytes; `None` if the block is malformed
/// or has more bytes than there is room.
pub fn decompress(mut block: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let (token, rest) = block.split_first()?;
        block = rest;
        let literals = take_rest(usize::from(token >> 4), &mut block)?;
        let (copied, rest) = block.split_at_checked(literals)?;
        out.get_mut(at..at + literals)?.copy_from_slice(copied);
        at += literals;
        block = rest;
        if block.is_empty() {
            return Some(at);
        }
        let (distance, rest) = block.split_first_chunk()?;
        block = rest;
        let distance = usize::from(u16::from_le_bytes(*distance));
        let length = take_rest(usize::from(token & 15), &mut block)? + MIN_MATCH;
        let from = at.checked_sub(distance).filter(|_| distance > 0)?;
        if out.len() - at < length {
            return None;
        }
        // A match may overlap itself.
        let mut done = 0;
        while done < length {
            let piece = (length - done).min(distance + done);
            out.copy_within(from..from + piece, at + done);
            done += piece;
        }
        at += length;
    }
}

/// Returns a length whose first four bits are known, and removes its further bytes.
fn take_rest(first: usize, block: &mut &[u8]) -> Option<usize> {
    let mut length = first;
    let mut is_open = first == NIBBLE;
    while is_open {
        let (more, rest) = block.split_first()?;
        length += usize::from(*more);
        is_open = *more == 255;
        *block = rest;
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded::SplitMix64;

    fn compressed(plain: &[u8]) -> Vec<u8> {
        let mut block = Vec::new();
        let most = 2 * plain.len() + 100;
        assert!(Compressor::default().compress(plain, most, &mut block));
        block
    }

    /// Returns bytes of which there are `kinds`, so that they have matches or none.
    fn bytes(seeds: &mut SplitMix64, count: u64, kinds: u64) -> Vec<u8> {
        (0..count).map(|_| seeds.below(kinds) as u8).collect()
    }

    #[test]
    fn a_block_decompresses_to_what_it_was_made_of() {
        let mut seeds = SplitMix64::new(5);
        for case in 0..2000 {
            let count = seeds.below([20, 700, 70_000][case % 3]);
            let plain = bytes(&mut seeds, count, [1, 2, 6, 256][case % 4]);
            let block = compressed(&plain);
            let mut out = vec![9; plain.len() + 1];
            assert_eq!(decompress(&block, &mut out), Some(plain.len()));
            assert_eq!(out[..plain.len()], plain);
            if let Some(less) = plain.len().checked_sub(1) {
                assert_eq!(decompress(&block, &mut out[..less]), None);
            }
        }
    }

    /// Nothing is written beyond the buffer, and a match is copied from bytes that were written.
    #[test]
    fn a_damaged_block_is_refused_or_is_another_one() {
        let mut seeds = SplitMix64::new(6);
        for _ in 0..2000 {
            let count = seeds.below(300);
            let plain = bytes(&mut seeds, count, 3);
            let mut block = compressed(&plain);
            let cut = seeds.below(block.len() as u64) as usize;
            let mut out = vec![0; plain.len()];
            assert_ne!(decompress(&block[..cut], &mut out), Some(plain.len()));
            block[cut] ^= 1 + seeds.below(255) as u8;
            let decompressed = decompress(&block, &mut out);
            assert!(decompressed.is_none_or(|bytes| bytes <= plain.len()));
        }
        // A match before the beginning, at no distance, and a length without an end.
        for block in [
            &[0x10, 1, 2, 0][..],
            &[0x10, 1, 0, 0],
            &[0xf0, 255, 255],
            &[],
        ] {
            assert_eq!(decompress(block, &mut [0; 100]), None, "{block:?}");
        }
    }

    /// A block that the reference implementation has made: `lz4 --legacy`, without its head.
    #[test]
    fn the_format_is_that_of_lz4() {
        let block =
            b"\xb9a scatter, \x0b\x00\xa6gather and\x18\x005 of\x1a\x00?: 0\x01\x00\x00P00000";
        let plain =
            b"a scatter, a scatter, a gather and a scatter of a gather: 0000000000000000000000000";
        let mut out = [0; 100];
        assert_eq!(decompress(block, &mut out), Some(plain.len()));
        assert_eq!(&out[..plain.len()], plain);
    }

    #[test]
    fn what_does_not_shrink_is_given_up() {
        let mut seeds = SplitMix64::new(7);
        let plain = bytes(&mut seeds, 60_000, 256);
        let most = plain.len() - plain.len() / 8;
        assert!(!Compressor::default().compress(&plain, most, &mut Vec::new()));
        let mut block = Vec::new();
        assert!(Compressor::default().compress(&[0; 60_000], 300, &mut block));
        assert!(block.len() < 300);
    }
}
