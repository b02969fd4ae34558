//! The seal of a frame on a tree edge: its number, and checksums of everything that no digest
//! protects. One end of an edge numbers its frames and the other checks the numbers. So a duplicate
//! frame is dropped, a lost one is detected at once, and the next receiver detects any flipped bit
//! of a header.
//!
//! A seal belongs to an edge, not to a message: a relay verifies one seal and creates another. It
//! is between a frame's length and its message as the first fields of that message, so that a
//! sealed frame is also protobuf. Its width is fixed, so that it can be written before bytes that
//! are not moved.

use twox_hash::XxHash3_64;

use super::{LENGTH_BYTES, MAX_FLIT_PREFIX, WireError, flit, frame_length};

/// Bytes that a seal adds to a frame: three numbers of four bytes, each with its key.
pub const SEAL_BYTES: usize = 15;

/// Bytes of the length and the seal.
pub const HEAD_BYTES: usize = LENGTH_BYTES + SEAL_BYTES;

/// Maximum number of checked bytes of a flit: those before its payload. The message's digest
/// protects the rest. Other frames are checked completely.
const CHECKED_BYTES: usize = MAX_FLIT_PREFIX;

/// The keys of `proto/flitcast.proto`: fixed32 of the fields 12, 13 and 14.
const SEQUENCE_KEY: u8 = (12 << 3) | 5;
const CHECKSUM_KEY: u8 = (13 << 3) | 5;
const HEAD_CHECKSUM_KEY: u8 = (14 << 3) | 5;

/// A frame's head, including its length.
pub type SealHead = [u8; HEAD_BYTES];

/// The sending end of an edge.
#[derive(Debug, Default)]
pub struct FrameSealer {
    next: u32,
}

impl FrameSealer {
    /// Returns the head of the next frame, whose message may be in two pieces: the first contains
    /// all of a flit except its payload.
    #[inline]
    pub fn seal(&mut self, message: [&[u8]; 2]) -> SealHead {
        let bytes = SEAL_BYTES + message[0].len() + message[1].len();
        let checksum = match message {
            [whole, []] => checksum(whole),
            [first, second] => {
                let mut checked = [0; CHECKED_BYTES];
                let first = &first[..first.len().min(CHECKED_BYTES)];
                let rest = (CHECKED_BYTES - first.len()).min(second.len());
                checked[..first.len()].copy_from_slice(first);
                checked[first.len()..first.len() + rest].copy_from_slice(&second[..rest]);
                short(&checked[..first.len() + rest])
            }
        };
        let mut head = [0; HEAD_BYTES];
        // Every frame built here is far below 4 GiB: see `limits`.
        head[..4].copy_from_slice(&(bytes as u32).to_be_bytes());
        head[4] = SEQUENCE_KEY;
        head[5..9].copy_from_slice(&self.next.to_le_bytes());
        head[9] = CHECKSUM_KEY;
        head[10..14].copy_from_slice(&checksum.to_le_bytes());
        head[14] = HEAD_CHECKSUM_KEY;
        let of_head = short(&head[..15]);
        head[15..].copy_from_slice(&of_head.to_le_bytes());
        self.next = self.next.wrapping_add(1);
        head
    }

    /// Returns a frame with a seal; `frame` is a length with a message, without a seal.
    pub fn sealed(&mut self, frame: &[u8]) -> Vec<u8> {
        let message = &frame[LENGTH_BYTES..];
        [&self.seal([message, &[]])[..], message].concat()
    }
}

/// The receiving end of an edge.
#[derive(Debug, Default)]
pub struct FrameVerifier {
    next: u32,
}

impl FrameVerifier {
    /// Returns whether this whole frame is new; otherwise it is a duplicate.
    ///
    /// # Errors
    ///
    /// Returns an error if the frame was changed, or if one is missing before it.
    #[inline]
    pub fn open(&mut self, frame: &[u8]) -> Result<bool, WireError> {
        let Some((head, message)) = frame.split_first_chunk::<HEAD_BYTES>() else {
            return Err(WireError::malformed("it has no seal"));
        };
        verify(head)?;
        if checksum(message) != number(head, 10) {
            return Err(WireError::Changed);
        }
        let sequence = number(head, 5);
        // Numbers wrap around: a duplicate arrives long before half of them have passed.
        if sequence.wrapping_sub(self.next) > u32::MAX / 2 {
            return Ok(false);
        }
        if sequence != self.next {
            let expected = self.next;
            return Err(WireError::Skipped { sequence, expected });
        }
        self.next = self.next.wrapping_add(1);
        Ok(true)
    }
}

/// Returns the number of bytes, including the head, of the frame that begins with these bytes;
/// `None` if it is not known yet. The head is verified as soon as it is complete, because a
/// receiver must not wait for a length that was changed.
#[inline]
pub fn frame_bytes(begin: &[u8], limit: usize) -> Result<Option<usize>, WireError> {
    let Some(length) = begin.first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = frame_length(*length, limit)?;
    if length < SEAL_BYTES {
        return Err(WireError::malformed("it has no seal"));
    }
    if let Some(head) = begin.first_chunk::<HEAD_BYTES>() {
        verify(head)?;
    }
    Ok(Some(LENGTH_BYTES + length))
}

#[inline]
fn verify(head: &SealHead) -> Result<(), WireError> {
    let keys = [head[4], head[9], head[14]];
    let is_whole = keys == [SEQUENCE_KEY, CHECKSUM_KEY, HEAD_CHECKSUM_KEY]
        && short(&head[..15]) == number(head, 15);
    is_whole.then_some(()).ok_or(WireError::Changed)
}

#[inline]
fn checksum(message: &[u8]) -> u32 {
    match flit::is_flit(message) {
        true => short(&message[..message.len().min(CHECKED_BYTES)]),
        false => short(message),
    }
}

#[inline]
fn short(bytes: &[u8]) -> u32 {
    XxHash3_64::oneshot(bytes) as u32
}

#[inline]
fn number(head: &SealHead, at: usize) -> u32 {
    let bytes = head[at..].first_chunk().expect("a head has four numbers");
    u32::from_le_bytes(*bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{MAX_FLIT_BYTES, edge::EdgeFrame};
    use crate::{RoundId, items::Control};

    fn token() -> Vec<u8> {
        let (round, item) = (RoundId(1), Control::Token);
        let mut frame = Vec::new();
        EdgeFrame::Control { round, item }.put(&mut frame);
        frame
    }

    fn flit(payload: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        flit::put_prefix(None, Some(&[9; 16]), payload, &mut frame);
        frame.resize(frame.len() + payload, 7);
        frame
    }

    #[test]
    fn repeated_frames_are_opened_once() {
        let (mut sealer, mut opener) = (FrameSealer::default(), FrameVerifier::default());
        let mut sent = Vec::new();
        for frame in [token(), flit(1), flit(1000), token()] {
            sent.push(sealer.sealed(&frame));
            let last = sent.last().expect("just sent");
            assert_eq!(&last[HEAD_BYTES..], &frame[LENGTH_BYTES..]);
            assert_eq!(opener.open(last), Ok(true));
            for before in &sent {
                assert_eq!(opener.open(before), Ok(false));
            }
        }
    }

    #[test]
    fn the_numbers_wrap() {
        let mut sealer = FrameSealer { next: u32::MAX - 1 };
        let mut opener = FrameVerifier { next: u32::MAX - 1 };
        let mut before = None;
        for _ in 0..4 {
            let frame = sealer.sealed(&token());
            assert_eq!(opener.open(&frame), Ok(true));
            for old in [Some(&frame), before.as_ref()].into_iter().flatten() {
                assert_eq!(opener.open(old), Ok(false));
            }
            before = Some(frame);
        }
    }

    #[test]
    fn a_frame_that_is_missing_is_missed() {
        let (mut sealer, mut opener) = (FrameSealer::default(), FrameVerifier::default());
        for _ in 0..3 {
            assert_eq!(opener.open(&sealer.sealed(&token())), Ok(true));
        }
        let _lost = sealer.sealed(&token());
        let missed = opener.open(&sealer.sealed(&token())).unwrap_err();
        let (sequence, expected) = (4, 3);
        assert_eq!(missed, WireError::Skipped { sequence, expected });
    }

    #[test]
    fn a_message_in_two_pieces_has_the_seal_that_it_has_in_one() {
        for payload in [1, 50, 1000] {
            let frame = flit(payload);
            let whole = &frame[LENGTH_BYTES..];
            let one = FrameSealer::default().seal([whole, &[]]);
            for cut in [whole.len() - payload, 1, whole.len()] {
                let (first, second) = whole.split_at(cut);
                assert_eq!(FrameSealer::default().seal([first, second]), one);
            }
        }
    }

    #[test]
    fn every_flipped_bit_is_found() {
        for frame in [token(), flit(5), flit(1000)] {
            let frame = FrameSealer::default().sealed(&frame);
            let checked = frame.len().min(HEAD_BYTES + CHECKED_BYTES);
            for bit in 0..checked * 8 {
                let mut changed = frame.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                let found = frame_bytes(&changed, MAX_FLIT_BYTES as usize)
                    .and_then(|_| FrameVerifier::default().open(&changed));
                assert!(found.is_err(), "bit {bit}: {found:?}");
                if bit < HEAD_BYTES * 8 {
                    let begin = &changed[..HEAD_BYTES];
                    let found = frame_bytes(begin, MAX_FLIT_BYTES as usize);
                    assert!(found.is_err(), "bit {bit}, before the rest is there");
                }
            }
        }
    }

    #[test]
    fn a_length_is_checked_before_anything_is_reserved_for_it() {
        assert_eq!(frame_bytes(&[0, 0, 0], 100), Ok(None));
        assert_eq!(frame_bytes(&[0, 0, 0, 100], 100), Ok(Some(104)));
        let long = frame_bytes(&[0xff; 4], 100);
        assert!(matches!(long, Err(WireError::TooLong { .. })), "{long:?}");
        let empty = frame_bytes(&[0; 4], 100).unwrap_err().to_string();
        assert!(empty.contains("no seal"), "{empty}");
    }
}
