//! The connection to one neighbour: frames in, frames out.
//!
//! The reading side holds one frame and the length prefix of the next, never
//! more: that is what keeps a relay at one flit in user memory. In a stream of
//! flits each one costs one read, because its length came with the one before; a
//! short control frame costs one, because the first read is long enough for it.
//!
//! A link may be shaped (`shape.rs`): then every frame has a stamp ahead of it, which
//! is a frame of its own and is not shown, and is shown itself when it has arrived.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use flitcast_proto::PeId;
use flitcast_proto::wire::control::Doing;
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::{LENGTH_BYTES, MAX_FLIT_PREFIX, WireError, frame_length};
use thiserror::Error;
use tokio::io::{AsyncRead as _, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;

use crate::pulse::Pulse;
use crate::shape::Shape;

/// What is read before a frame's length is known: enough for most control frames,
/// and less than the shortest message that is one flit (35 bytes: a head, a digest
/// and a byte), so that two never lie here together. (A stamp has 15, and with it come
/// the first bytes of its frame.)
const FIRST_READ: usize = 24;

/// A neighbour cannot be heard or reached any more.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The connection was closed between frames.
    #[error("{peer} at {addr} closed the connection")]
    Closed {
        /// The neighbour.
        peer: PeId,
        /// Its address.
        addr: SocketAddr,
    },
    /// The connection was closed inside a frame.
    #[error("{peer} at {addr} closed the connection inside a frame, {got} of {expected} bytes")]
    Truncated {
        /// The neighbour.
        peer: PeId,
        /// Its address.
        addr: SocketAddr,
        /// Bytes that came.
        got: usize,
        /// Bytes that the frame has.
        expected: usize,
    },
    /// The operating system says so.
    #[error("the connection to {peer} at {addr} failed: {source}")]
    Io {
        /// The neighbour.
        peer: PeId,
        /// Its address.
        addr: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// What came is no frame of the protocol.
    #[error("from {peer} at {addr}: {source}")]
    Wire {
        /// The neighbour.
        peer: PeId,
        /// Its address.
        addr: SocketAddr,
        /// Why.
        source: WireError,
    },
}

impl LinkError {
    /// The neighbour.
    pub fn peer(&self) -> PeId {
        match self {
            LinkError::Closed { peer, .. }
            | LinkError::Truncated { peer, .. }
            | LinkError::Io { peer, .. }
            | LinkError::Wire { peer, .. } => *peer,
        }
    }
}

/// A connection to one neighbour.
#[derive(Debug)]
pub struct Link {
    peer: PeId,
    addr: SocketAddr,
    stream: TcpStream,
    reader: Reader,
    /// Where control frames are put together; kept for its memory.
    scratch: Vec<u8>,
    /// Boxed: few links have one, and all are moved about.
    shape: Option<Box<Shape>>,
    pulse: Arc<Pulse>,
}

impl Link {
    /// A link for frames with a payload of at most `flit_bytes`.
    pub fn new(peer: PeId, stream: TcpStream, flit_bytes: u32) -> io::Result<Link> {
        stream.set_nodelay(true)?;
        Ok(Link {
            peer,
            addr: stream.peer_addr()?,
            stream,
            reader: Reader::new(flit_bytes as usize + MAX_FLIT_PREFIX),
            scratch: Vec::new(),
            shape: None,
            pulse: Arc::default(),
        })
    }

    /// Tells `pulse` what it does, from now on.
    pub fn watch(&mut self, pulse: Arc<Pulse>) {
        if let Ok(local) = self.stream.local_addr() {
            pulse.has_edge(self.peer, local, self.addr);
        }
        self.pulse = pulse;
    }

    /// Gives the link a shape, from the next frame on, in both directions. Its other
    /// end must do the same.
    pub fn shape(&mut self, shape: Shape) {
        self.shape = Some(Box::new(shape));
    }

    /// Who is at the other end.
    pub fn peer(&self) -> PeId {
        self.peer
    }

    /// The neighbour has said who it is: from now on it may send flits.
    pub fn is_known_to_be(&mut self, peer: PeId, flit_bytes: u32) {
        self.peer = peer;
        self.reader.grow(flit_bytes as usize + MAX_FLIT_PREFIX);
    }

    /// Names this link in what the operating system says of it.
    pub fn failed(&self, source: io::Error) -> LinkError {
        LinkError::Io {
            peer: self.peer,
            addr: self.addr,
            source,
        }
    }

    /// Names this link in an error about what came over it.
    pub fn wire(&self, source: WireError) -> LinkError {
        LinkError::Wire {
            peer: self.peer,
            addr: self.addr,
            source,
        }
    }

    /// Waits for a whole frame; [`Link::body`] and [`Link::frame`] then show it
    /// until [`Link::consume`].
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        ready!(self.poll_stamped(cx))?;
        let Some(shape) = &mut self.shape else {
            return Poll::Ready(Ok(()));
        };
        let arrival = shape.poll_arrival(cx, self.reader.frame().len());
        self.pulse.on_clock(arrival.is_pending());
        arrival.map_err(|e| self.failed(e))
    }

    /// Waits for a whole frame that is no stamp, wherever it nominally is.
    fn poll_stamped(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        loop {
            ready!(self.poll_whole(cx))?;
            match &mut self.shape {
                Some(shape) if shape.wants_stamp() => {
                    let stamp = &self.reader.frame()[LENGTH_BYTES..];
                    if let Err(error) = shape.stamped(stamp) {
                        return Poll::Ready(Err(self.wire(error)));
                    }
                    self.reader.consume();
                }
                _ => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Waits for a whole frame, stamps among them.
    fn poll_whole(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        loop {
            match self.reader.missing() {
                Ok(0) => return Poll::Ready(Ok(())),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Err(self.wire(error))),
            }
            let mut space = ReadBuf::new(self.reader.space());
            let read = Pin::new(&mut self.stream).poll_read(cx, &mut space);
            let n = space.filled().len();
            match ready!(read) {
                Ok(()) if n == 0 => return Poll::Ready(Err(self.closed())),
                Ok(()) => {
                    self.reader.filled(n);
                    self.pulse.moved();
                }
                Err(error) => return Poll::Ready(Err(self.failed(error))),
            }
        }
    }

    fn closed(&self) -> LinkError {
        match self.reader.progress() {
            (0, _) => LinkError::Closed {
                peer: self.peer,
                addr: self.addr,
            },
            (got, expected) => LinkError::Truncated {
                peer: self.peer,
                addr: self.addr,
                got,
                expected,
            },
        }
    }

    /// Waits for a whole frame.
    pub async fn next_frame(&mut self) -> Result<(), LinkError> {
        std::future::poll_fn(|cx| self.poll_frame(cx)).await
    }

    /// The frame that is there, its length prefix included.
    pub fn frame(&self) -> &[u8] {
        self.reader.frame()
    }

    /// The protobuf message of the frame that is there.
    pub fn body(&self) -> &[u8] {
        &self.reader.frame()[LENGTH_BYTES..]
    }

    /// Done with the frame.
    pub fn consume(&mut self) {
        self.reader.consume();
        if let Some(shape) = &mut self.shape {
            shape.consumed();
        }
    }

    /// Waits for a frame that is no flit and takes it.
    pub async fn next_control(&mut self) -> Result<EdgeFrame, LinkError> {
        self.next_frame().await?;
        let frame = EdgeFrame::parse(self.body()).map_err(|e| self.wire(e))?;
        self.consume();
        Ok(frame)
    }

    /// Bytes that have come but were not read: they wait in the kernel. On a shaped
    /// link, what is still on the wire there has not come.
    pub fn waiting_bytes(&mut self) -> u64 {
        if self.shape.is_some() {
            // The first frame's stamp tells. What is wrong with it is for whoever waits
            // for the frame to find.
            let _ = self.poll_stamped(&mut Context::from_waker(Waker::noop()));
        }
        let waiting = rustix::io::ioctl_fionread(&self.stream).unwrap_or(0);
        let Some(shape) = &self.shape else {
            return waiting;
        };
        let held = self.reader.held.len() as u64;
        shape.landed(waiting + held, held)
    }

    /// Sends a frame that is no flit.
    pub async fn send_control(&mut self, frame: &EdgeFrame) -> Result<(), LinkError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        frame.put(&mut scratch);
        if let Some(shape) = &mut self.shape {
            // A few bytes wait for no port.
            let stamp = shape.slip_in(scratch.len());
            scratch.splice(..0, stamp.iter().copied());
        }
        let sent = self.write_parts([&[], &scratch, &[]]).await;
        self.scratch = scratch;
        sent.map_err(|e| self.failed(e))
    }

    /// Sends bytes that are a frame already.
    pub async fn send_frame(&mut self, frame: &[u8]) -> Result<(), LinkError> {
        self.send_flit(frame, &[]).await
    }

    /// Sends bytes that are frames already, one behind the other.
    pub async fn send_frames(&mut self, frames: &[u8]) -> Result<(), LinkError> {
        if self.shape.is_none() {
            return self.send_frame(frames).await;
        }
        let mut rest = frames;
        while let Some((prefix, behind)) = rest.split_first_chunk() {
            let length = frame_length(*prefix, behind.len()).map_err(|e| self.wire(e))?;
            let (frame, behind) = rest.split_at(LENGTH_BYTES + length);
            self.send_frame(frame).await?;
            rest = behind;
        }
        Ok(())
    }

    /// Sends a flit: its prefix, and its payload from where it lies.
    pub async fn send_flit(&mut self, prefix: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        let sent = self.write(prefix, payload).await;
        sent.map_err(|e| self.failed(e))
    }

    async fn write(&mut self, prefix: &[u8], payload: &[u8]) -> io::Result<()> {
        // On a shaped link, a frame's stamp goes with it.
        let mut stamp = Vec::new();
        if let Some(shape) = &mut self.shape {
            let written = shape.depart(prefix.len() + payload.len()).await?;
            stamp.extend_from_slice(written);
        }
        self.write_parts([&stamp, prefix, payload]).await
    }

    async fn write_parts(&mut self, parts: [&[u8]; 3]) -> io::Result<()> {
        let stream = &mut self.stream;
        let _waiting = self.pulse.doing(Doing::Sending(self.peer));
        let mut parts = parts.map(IoSlice::new);
        let mut rest = &mut parts[..];
        // What is empty at the front is left out.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let sent = stream.write_vectored(rest).await?;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.pulse.moved();
            IoSlice::advance_slices(&mut rest, sent);
        }
        Ok(())
    }
}

/// One frame and the length prefix of the next.
#[derive(Debug)]
struct Reader {
    buffer: Box<[u8]>,
    held: Range<usize>,
    max_frame: usize,
}

impl Reader {
    fn new(max_frame: usize) -> Reader {
        // Two prefixes: the frame's own, and the next one's.
        let buffer = vec![0; FIRST_READ.max(max_frame + 2 * LENGTH_BYTES)].into_boxed_slice();
        Reader {
            buffer,
            held: 0..0,
            max_frame,
        }
    }

    fn grow(&mut self, max_frame: usize) {
        let mut larger = Reader::new(max_frame.max(self.max_frame));
        let held = &self.buffer[self.held.clone()];
        larger.buffer[..held.len()].copy_from_slice(held);
        larger.held = 0..held.len();
        *self = larger;
    }

    /// The length of the frame at the front, prefix included, once it is known.
    fn frame_bytes(&self) -> Result<Option<usize>, WireError> {
        let held = &self.buffer[self.held.clone()];
        let Some(prefix) = held.first_chunk() else {
            return Ok(None);
        };
        Ok(Some(LENGTH_BYTES + frame_length(*prefix, self.max_frame)?))
    }

    /// Bytes that are missing from a whole frame, as far as is known.
    fn missing(&self) -> Result<usize, WireError> {
        let wanted = self.frame_bytes()?.unwrap_or(LENGTH_BYTES);
        Ok(wanted.saturating_sub(self.held.len()))
    }

    /// Bytes that came of those that are known to have to come.
    fn progress(&self) -> (usize, usize) {
        let expected = self.frame_bytes().ok().flatten().unwrap_or(LENGTH_BYTES);
        (self.held.len(), expected)
    }

    /// Where the next bytes go: up to the end of the frame and of the prefix
    /// behind it.
    fn space(&mut self) -> &mut [u8] {
        if self.held.start > 0 {
            // At most a prefix is left over.
            self.buffer.copy_within(self.held.clone(), 0);
            self.held = 0..self.held.len();
        }
        let wanted = match self.frame_bytes() {
            Ok(Some(frame)) => frame + LENGTH_BYTES,
            _ => FIRST_READ,
        };
        &mut self.buffer[self.held.end..wanted]
    }

    fn filled(&mut self, bytes: usize) {
        self.held.end += bytes;
    }

    fn frame(&self) -> &[u8] {
        let frame = self.frame_bytes().ok().flatten().unwrap_or(0);
        &self.buffer[self.held.start..self.held.start + frame]
    }

    fn consume(&mut self) {
        self.held.start += self.frame_bytes().ok().flatten().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(reader: &mut Reader, wire: &mut &[u8], most: usize) -> usize {
        let space = reader.space();
        let n = space.len().min(wire.len()).min(most);
        space[..n].copy_from_slice(&wire[..n]);
        *wire = &wire[n..];
        reader.filled(n);
        n
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let bodies: [&[u8]; 5] = [b"a", b"", b"hello", &[7; 100], b"z"];
        let mut wire = Vec::new();
        for body in bodies {
            wire.extend_from_slice(&(body.len() as u32).to_be_bytes());
            wire.extend_from_slice(body);
        }
        for most in [1, 2, 3, 5, 7, 1000] {
            let mut reader = Reader::new(100);
            let mut rest = &wire[..];
            for body in bodies {
                while reader.missing().unwrap() > 0 {
                    assert!(feed(&mut reader, &mut rest, most) > 0);
                }
                assert_eq!(&reader.frame()[LENGTH_BYTES..], body);
                reader.consume();
            }
            assert_eq!(reader.held.len() + rest.len(), 0);
        }
    }

    #[test]
    fn never_more_than_a_frame_and_a_prefix_is_held() {
        let frame = [&100u32.to_be_bytes()[..], &[7; 100]].concat();
        let wire = frame.repeat(10);
        let mut reader = Reader::new(100);
        let mut rest = &wire[..];
        for _ in 0..10 {
            while reader.missing().unwrap() > 0 {
                feed(&mut reader, &mut rest, 1000);
                assert!(reader.held.len() <= frame.len() + LENGTH_BYTES);
            }
            reader.consume();
        }
    }

    #[test]
    fn a_long_frame_is_refused_by_its_prefix() {
        let mut reader = Reader::new(3);
        feed(&mut reader, &mut &u32::MAX.to_be_bytes()[..], 4);
        assert!(matches!(reader.missing(), Err(WireError::TooLong { .. })));
    }
}
