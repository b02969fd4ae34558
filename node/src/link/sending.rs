//! The sending half of a link.
//!
//! There is one way for all frames: a frame gets its departure time, if the link is shaped, and its
//! seal, and is written as far as the connection accepts it. A caller waits until all of it is written
//! (`send_*`), and the payload is not copied; or the link stores the rest (`begin_*`) until
//! [`Link::poll_sent`] has written it. Only begun frames are coalesced; paced flits are written from the
//! stored rest.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use flitcast_proto::Time;
use flitcast_proto::ops::COALESCE_LIMIT_BYTES;
use flitcast_proto::wire::LENGTH_BYTES;
use flitcast_proto::wire::control::Doing;
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::seal::{HEAD_BYTES, SealHead};
use tokio::io::AsyncWrite as _;

use super::{Link, LinkError, is_any_flit};

/// A message to be sent in a frame, in two pieces, without its length.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing<'a> {
    pieces: [&'a [u8]; 2],
    kind: FrameKind,
}

/// The way of a frame through ports and pacers.
#[derive(Clone, Copy, Debug)]
enum FrameKind {
    /// A few bytes, which wait for no port and no pacer.
    Control,
    /// A flit, and whether it joins the packet of the last one.
    Flit { joins: bool },
}

impl<'a> Outgoing<'a> {
    /// Creates a flit: its prefix, which begins with a length, and its payload.
    pub fn flit(prefix: &'a [u8], payload: &'a [u8]) -> Outgoing<'a> {
        // The seal contains a length.
        Outgoing::piecewise([&prefix[LENGTH_BYTES..], payload])
    }

    /// Creates a flit from a frame's message that arrived on another link.
    pub fn forwarded(body: &'a [u8]) -> Outgoing<'a> {
        Outgoing::piecewise([body, &[]])
    }

    fn piecewise(pieces: [&'a [u8]; 2]) -> Outgoing<'a> {
        let kind = FrameKind::Flit { joins: false };
        Outgoing { pieces, kind }
    }

    /// Returns the frame with another message.
    fn with_body<'b>(self, body: &'b [u8]) -> Outgoing<'b> {
        Outgoing {
            pieces: [body, &[]],
            kind: self.kind,
        }
    }

    /// Lets a flit join the packet of the last one, or not.
    pub fn joining(self, joins: bool) -> Outgoing<'a> {
        let kind = FrameKind::Flit { joins };
        Outgoing { kind, ..self }
    }
}

/// The departure of a frame on a shaped link, and whether it joins the packet of the last flit.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    at: Time,
    joins: bool,
}

/// The part of begun frames that the connection has not accepted yet.
#[derive(Debug, Default)]
pub(super) struct PendingWrite {
    /// A flit that waits for its departure, on a shaped link.
    waits: Option<(FrameKind, [Vec<u8>; 2])>,
    /// Bytes, and the number of those that are written.
    pub(super) bytes: Vec<u8>,
    written: usize,
    /// Whether nothing is left in the TLS buffer.
    is_flushed: bool,
    /// Whether frames wait to be coalesced with others.
    gathers: bool,
}

/// A frame that is being written.
struct SealedFrame<'a> {
    /// The frame of the stamp on a shaped link, otherwise empty.
    stamp: Vec<u8>,
    head: SealHead,
    pieces: [&'a [u8]; 2],
    /// Number of bytes that are written or stored.
    written: usize,
}

impl SealedFrame<'_> {
    /// Returns what is left of each part.
    fn left(&self) -> [&[u8]; 4] {
        let [prefix, payload] = self.pieces;
        let mut written = self.written;
        [&self.stamp, self.head.as_slice(), prefix, payload].map(|part| {
            let (before, left) = part.split_at(written.min(part.len()));
            written -= before.len();
            left
        })
    }

    fn bytes_left(&self) -> usize {
        self.left().iter().map(|part| part.len()).sum()
    }
}

impl PendingWrite {
    /// Stores what is left of a frame.
    fn store(&mut self, frame: &mut SealedFrame<'_>) {
        for part in frame.left() {
            self.bytes.extend_from_slice(part);
        }
        self.is_flushed &= frame.bytes_left() == 0;
        frame.written += frame.bytes_left();
    }
}

impl Link {
    pub async fn send_control(&mut self, frame: &EdgeFrame) -> Result<(), LinkError> {
        let scratch = self.encoded(frame);
        let sent = self.send_frame(control(&scratch)).await;
        self.scratch = scratch;
        sent
    }

    /// Starts to send a control frame, even while a flit is in progress, but never inside another
    /// frame.
    pub fn begin_control(&mut self, frame: &EdgeFrame) -> Result<(), LinkError> {
        let scratch = self.encoded(frame);
        let begun = self.begin_frame(control(&scratch));
        self.scratch = scratch;
        begun.map(|_| ())
    }

    fn encoded(&mut self, frame: &EdgeFrame) -> Vec<u8> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        frame.put(&mut scratch);
        scratch
    }

    /// Sends a flit, and waits until all of it is written.
    pub async fn send_frame(&mut self, message: Outgoing<'_>) -> Result<(), LinkError> {
        match self.packed(message) {
            Some(packed) => self.send_as_is(message.with_body(&packed)).await,
            None => self.send_as_is(message).await,
        }
    }

    async fn send_as_is(&mut self, message: Outgoing<'_>) -> Result<(), LinkError> {
        let stamp = poll_fn(|cx| self.poll_stamp(cx, message)).await;
        let mut frame = self.sealed(stamp.map_err(|e| self.failed(e))?, message.pieces);
        let pulse = self.pulse.clone();
        let _waiting = pulse.doing(Doing::Sending(self.at.peer));
        let written = poll_fn(|cx| self.poll_write(cx, message.kind, &mut frame)).await;
        written.map_err(|e| self.failed(e))
    }

    /// Starts to send a flit, and returns whether all of it is written. The rest is stored here until
    /// [`Link::poll_sent`] has written it; no other flit may be sent before.
    pub fn begin_frame(&mut self, message: Outgoing<'_>) -> Result<bool, LinkError> {
        let begun = match self.packed(message) {
            Some(packed) => self.try_begin(message.with_body(&packed)),
            None => self.try_begin(message),
        };
        begun.map_err(|e| self.failed(e))
    }

    /// Compresses a flit; returns `None` if it is sent as it is.
    fn packed(&mut self, Outgoing { pieces, kind }: Outgoing<'_>) -> Option<Vec<u8>> {
        let packing = self.packing.as_mut();
        let packing = packing.filter(|_| matches!(kind, FrameKind::Flit { .. }));
        packing?.pack(pieces)
    }

    fn try_begin(&mut self, message: Outgoing<'_>) -> io::Result<bool> {
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(stamp) = self.poll_stamp(&mut cx, message)? else {
            self.rest.waits = Some((message.kind, message.pieces.map(<[u8]>::to_vec)));
            return Ok(false);
        };
        let mut frame = self.sealed(stamp, message.pieces);
        let is_coalesced =
            self.rest.gathers && self.rest.bytes.len() + frame.bytes_left() <= COALESCE_LIMIT_BYTES;
        let is_sent = is_coalesced
            || self
                .poll_write(&mut cx, message.kind, &mut frame)?
                .is_ready();
        self.rest.store(&mut frame);
        Ok(is_sent)
    }

    /// Waits until a frame may depart; returns its stamp on a shaped link.
    fn poll_stamp(
        &mut self,
        cx: &mut Context<'_>,
        Outgoing { pieces, kind }: Outgoing<'_>,
    ) -> Poll<io::Result<Option<Stamp>>> {
        let Some(shape) = &mut self.shape else {
            return Poll::Ready(Ok(None));
        };
        let bytes = HEAD_BYTES + pieces[0].len() + pieces[1].len();
        let (at, joins) = match kind {
            FrameKind::Control => (shape.slip_in(bytes), false),
            FrameKind::Flit { joins } => (ready!(shape.poll_depart(cx, joins, bytes))?, joins),
        };
        Poll::Ready(Ok(Some(Stamp { at, joins })))
    }

    /// Seals a message and, on a shaped link, the stamp before it.
    fn sealed<'a>(&mut self, stamp: Option<Stamp>, pieces: [&'a [u8]; 2]) -> SealedFrame<'a> {
        let mut stamp_frame = Vec::new();
        if let Some(Stamp { at, joins }) = stamp {
            EdgeFrame::Departed { at, joins }.put(&mut stamp_frame);
            stamp_frame = self.sealer.sealed(&stamp_frame);
        }
        let frame = SealedFrame {
            stamp: stamp_frame,
            head: self.sealer.seal(pieces),
            pieces,
            written: 0,
        };
        self.counter
            .sent(frame.bytes_left(), is_any_flit(pieces[0]));
        frame
    }

    /// Writes a frame behind those that were started before, until the connection has accepted all of
    /// them.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        kind: FrameKind,
        frame: &mut SealedFrame<'_>,
    ) -> Poll<io::Result<()>> {
        let is_paced = self.pacer.is_some() && matches!(kind, FrameKind::Flit { .. });
        if is_paced || !self.rest.bytes.is_empty() {
            self.rest.store(frame);
        }
        while frame.bytes_left() > 0 {
            self.rest.is_flushed = false;
            let mut slices = frame.left().map(IoSlice::new);
            let mut left = &mut slices[..];
            // Removes empty slices at the front.
            IoSlice::advance_slices(&mut left, 0);
            let sent = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, left))?;
            frame.written += self.wrote(sent)?;
        }
        self.poll_rest(cx)
    }

    /// Writes the stored rest, as fast as the pacer permits.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some((kind, pieces)) = self.rest.waits.take() {
            let pieces_left = [&pieces[0][..], &pieces[1]];
            let pieces_left = Outgoing {
                pieces: pieces_left,
                kind,
            };
            let Poll::Ready(stamp) = self.poll_stamp(cx, pieces_left)? else {
                self.rest.waits = Some((kind, pieces));
                return Poll::Pending;
            };
            let mut frame = self.sealed(stamp, pieces_left.pieces);
            self.rest.store(&mut frame);
        }
        while self.rest.written < self.rest.bytes.len() {
            let mut next = &self.rest.bytes[self.rest.written..];
            if let Some(pacer) = &self.pacer {
                next = &next[..ready!(pacer.poll_take(cx, next.len()))?];
            }
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, next))?;
            self.rest.written += self.wrote(sent)?;
            if let Some(pacer) = &self.pacer {
                pacer.took(sent);
            }
        }
        self.rest.bytes.clear();
        self.rest.written = 0;
        // With TLS, the end of a frame may still be in its buffer.
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.rest.is_flushed = true;
        Poll::Ready(Ok(()))
    }

    /// Records the result of a write.
    fn wrote(&self, bytes: usize) -> io::Result<usize> {
        if bytes == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.pulse.moved();
        Ok(bytes)
    }

    /// Waits until all started frames are written.
    pub fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        match self.rest.waits.is_none() && self.rest.bytes.is_empty() && self.rest.is_flushed {
            true => Poll::Ready(Ok(())),
            false => self.poll_rest(cx).map_err(|e| self.failed(e)),
        }
    }

    /// Coalesces consecutive short frames into one system call, until [`Link::flush_gathered`]. Frames
    /// with a departure time are not coalesced.
    pub fn gather(&mut self) {
        self.rest.gathers = self.shape.is_none() && self.pacer.is_none();
    }

    /// Writes the coalesced frames, as far as the connection accepts them.
    pub fn flush_gathered(&mut self) -> Result<(), LinkError> {
        self.rest.gathers = false;
        match self.poll_sent(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Ok(()),
        }
    }
}

/// Returns the message of an encoded control frame.
fn control(encoded: &[u8]) -> Outgoing<'_> {
    Outgoing {
        pieces: [&encoded[LENGTH_BYTES..], &[]],
        kind: FrameKind::Control,
    }
}
