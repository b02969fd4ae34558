//! Extraction of frames from a stream of bytes, without I/O: the buffer for the next bytes, and
//! whether they form a whole frame that is not a duplicate.
//!
//! The buffer has room for one full frame, which limits a relay to one flit in user memory. In a
//! stream of flits each takes one read, because its length arrived with the one before. The frame of an
//! idle connection takes one read as well, because as much is read as there is room for.

use std::ops::Range;

use super::seal::{FrameVerifier, HEAD_BYTES, SEAL_BYTES, frame_bytes};
use super::{LENGTH_BYTES, WireError};

use crate::limits::{FIRST_READ_BYTES, READ_AHEAD_BYTES};

/// The state of the first frame in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Part of a frame; more bytes must be read.
    Incomplete,
    /// A whole frame that was not returned before.
    New,
    /// A frame that a previous call has returned already.
    Open,
    /// A duplicate frame, which was dropped.
    Repeated { bytes: usize },
}

/// A buffer for one frame and the length prefix of the next, or for several short frames.
#[derive(Debug)]
pub struct FrameReader {
    buffer: Box<[u8]>,
    held: Range<usize>,
    max_frame: usize,
    /// Minimum number of bytes to read, if available.
    ahead: usize,
    /// Length of the first frame, once its head is complete and verified.
    known: Option<usize>,
    /// Whether the first frame was found to be new.
    is_open: bool,
    opener: FrameVerifier,
}

impl FrameReader {
    /// Creates a reader for frames whose messages have at most `max_frame` bytes.
    pub fn new(max_frame: usize) -> FrameReader {
        // Two prefixes: that of the frame and that of the next one.
        let room = FIRST_READ_BYTES.max(max_frame + 2 * LENGTH_BYTES);
        FrameReader {
            buffer: vec![0; room].into_boxed_slice(),
            held: 0..0,
            max_frame,
            ahead: READ_AHEAD_BYTES.min(room),
            known: None,
            is_open: false,
            opener: FrameVerifier::default(),
        }
    }

    /// Returns the maximum length of a frame's message without its seal.
    pub fn max_body(&self) -> usize {
        self.max_frame - SEAL_BYTES
    }

    /// Limits the buffer to one frame and the length prefix of the next, from now on.
    pub fn read_singly(&mut self) {
        self.ahead = 0;
    }

    /// Permits messages of `max_frame` bytes from now on.
    pub fn grow(&mut self, max_frame: usize) {
        if max_frame <= self.max_frame {
            return;
        }
        let mut larger = FrameReader::new(max_frame);
        let held = &self.buffer[self.held.clone()];
        larger.buffer[..held.len()].copy_from_slice(held);
        larger.held = 0..held.len();
        larger.opener = std::mem::take(&mut self.opener);
        if self.ahead == 0 {
            larger.read_singly();
        }
        *self = larger;
    }

    /// Writes to the memory for frames whose messages have `max_frame` bytes, since the first access to a
    /// page takes the system longer than it takes to copy a frame's bytes there.
    pub fn touch(&mut self, max_frame: usize) {
        let end = self.buffer.len().min(max_frame + 2 * LENGTH_BYTES);
        self.buffer[self.held.end.min(end)..end].fill(0);
    }

    /// Returns the length of the first frame including its prefix, once known.
    #[inline]
    fn known_bytes(&self) -> Result<Option<usize>, WireError> {
        match self.known {
            Some(known) => Ok(Some(known)),
            None => frame_bytes(&self.buffer[self.held.clone()], self.max_frame),
        }
    }

    /// Returns the number of bytes that are missing from a whole frame, as far as known.
    #[inline]
    fn missing(&mut self) -> Result<usize, WireError> {
        let bytes = self.known_bytes()?;
        if self.held.len() >= HEAD_BYTES {
            self.known = bytes;
        }
        let wanted = bytes.unwrap_or(LENGTH_BYTES);
        Ok(wanted.saturating_sub(self.held.len()))
    }

    /// Returns the number of bytes of the first frame that are present, and the number of bytes
    /// that it is known to have.
    pub fn progress(&self) -> (usize, usize) {
        let expected = self.known_bytes().ok().flatten().unwrap_or(LENGTH_BYTES);
        (self.held.len(), expected)
    }

    /// Returns the buffer for the next bytes: up to the end of the frame and of the prefix behind
    /// it, and at least as long as is read ahead.
    #[inline]
    pub fn space(&mut self) -> &mut [u8] {
        if self.held.start > 0 {
            self.buffer.copy_within(self.held.clone(), 0);
            self.held = 0..self.held.len();
        }
        let wanted = match self.known_bytes() {
            Ok(Some(frame)) => frame + LENGTH_BYTES,
            _ if self.ahead == 0 => FIRST_READ_BYTES,
            _ => self.buffer.len(),
        };
        &mut self.buffer[self.held.end..wanted.max(self.ahead)]
    }

    /// Reports that `bytes` bytes were written to that buffer.
    #[inline]
    pub fn filled(&mut self, bytes: usize) {
        self.held.end += bytes;
    }

    /// Checks the first frame. Fails if the bytes cannot be a frame, or are not what was sent next.
    #[inline]
    pub fn look(&mut self) -> Result<Look, WireError> {
        if self.missing()? > 0 {
            return Ok(Look::Incomplete);
        }
        if self.is_open {
            return Ok(Look::Open);
        }
        let frame = &self.buffer[self.held.clone()];
        let bytes = self.known.unwrap_or(0).min(frame.len());
        if self.opener.open(&frame[..bytes])? {
            self.is_open = true;
            return Ok(Look::New);
        }
        self.consume();
        Ok(Look::Repeated { bytes })
    }

    /// Returns the message of the whole first frame, without length and seal.
    #[inline]
    pub fn body(&self) -> &[u8] {
        &self.frame()[HEAD_BYTES..]
    }

    /// Returns the length of the first frame on the wire.
    #[inline]
    pub fn frame_bytes(&self) -> usize {
        self.frame().len()
    }

    /// Returns the number of bytes in the buffer.
    #[inline]
    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    #[inline]
    fn frame(&self) -> &[u8] {
        let frame = self.known_bytes().ok().flatten().unwrap_or(0);
        &self.buffer[self.held.start..self.held.start + frame]
    }

    /// Removes the first frame.
    #[inline]
    pub fn consume(&mut self) {
        self.held.start += self.known_bytes().ok().flatten().unwrap_or(0);
        self.known = None;
        self.is_open = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::seal::{FrameSealer, SEAL_BYTES};

    fn feed(reader: &mut FrameReader, wire: &mut &[u8], most: usize) -> usize {
        let space = reader.space();
        let n = space.len().min(wire.len()).min(most);
        space[..n].copy_from_slice(&wire[..n]);
        *wire = &wire[n..];
        reader.filled(n);
        n
    }

    /// Returns the frames of these messages.
    fn sealed(bodies: &[&[u8]]) -> Vec<u8> {
        let mut sealer = FrameSealer::default();
        let frames = bodies
            .iter()
            .map(|body| [&sealer.seal([body, &[]])[..], body].concat());
        frames.collect::<Vec<_>>().concat()
    }

    /// Reads the frames of these messages, at most `most` bytes at a time. Returns the number of reads
    /// and the largest number of bytes that were held.
    fn read_all(reader: &mut FrameReader, bodies: &[&[u8]], most: usize) -> (usize, usize) {
        let wire = sealed(bodies);
        let (mut rest, mut reads, mut held) = (&wire[..], 0, 0);
        for body in bodies {
            while reader.look().unwrap() == Look::Incomplete {
                assert!(feed(reader, &mut rest, most) > 0);
                // At any time.
                reader.touch(body.len());
                reads += 1;
                held = held.max(reader.held_bytes());
            }
            assert_eq!(reader.look(), Ok(Look::Open));
            assert_eq!(reader.body(), *body);
            reader.consume();
        }
        assert_eq!(reader.held_bytes() + rest.len(), 0);
        (reads, held)
    }

    #[test]
    fn frames_are_unchanged_however_the_stream_is_cut() {
        let bodies: [&[u8]; 5] = [b"a", b"", b"hello", &[7; 100], b"z"];
        for most in [1, 2, 3, 5, 7, 1000] {
            let mut reader = FrameReader::new(SEAL_BYTES + 100);
            read_all(&mut reader, &bodies, most);
        }
    }

    #[test]
    fn never_more_than_a_frame_and_a_prefix_is_held() {
        let mut reader = FrameReader::new(SEAL_BYTES + 100);
        reader.read_singly();
        let (_, held) = read_all(&mut reader, &[&[7; 100][..]; 10], 1000);
        assert!(held <= HEAD_BYTES + 100 + LENGTH_BYTES, "{held}");
    }

    #[test]
    fn a_first_frame_takes_one_read() {
        for bytes in [1, 1000, 20_000, 1 << 20] {
            let mut reader = FrameReader::new(SEAL_BYTES + (1 << 20));
            let (reads, _) = read_all(&mut reader, &[&vec![7; bytes]], usize::MAX);
            assert_eq!(reads, 1);
        }
    }

    #[test]
    fn short_frames_share_a_read_as_far_as_there_is_room() {
        let bodies: Vec<[u8; 10]> = (0..100).map(|at| [at; 10]).collect();
        let bodies: Vec<&[u8]> = bodies.iter().map(|body| &body[..]).collect();
        let (reads, _) = read_all(&mut FrameReader::new(1000), &bodies, usize::MAX);
        assert_eq!(reads, sealed(&bodies).len().div_ceil(1000));
    }

    #[test]
    fn a_long_frame_is_refused_by_its_prefix() {
        let mut reader = FrameReader::new(3);
        feed(&mut reader, &mut &u32::MAX.to_be_bytes()[..], 4);
        assert!(matches!(reader.look(), Err(WireError::TooLong { .. })));
    }
}
