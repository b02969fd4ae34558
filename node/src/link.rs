//! The connection to one neighbour: frames in, frames out.
//!
//! Every frame is sent under a seal (`flitcast_proto::wire::seal`) and returned without it; a duplicate
//! of any frame is dropped here. `flitcast_proto::wire::reader` decides how much is read at once.
//!
//! A link may be shaped (`shape.rs`). Then every frame follows a stamp, which is a separate frame and
//! is not returned, and a frame is only returned after its arrival time.

mod error;

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use flitcast_proto::ops::COALESCE_LIMIT_BYTES;
use flitcast_proto::wire::control::Doing;
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::flit::is_flit;
use flitcast_proto::wire::reader::{FrameReader, Look};
use flitcast_proto::wire::seal::{FrameSealer, HEAD_BYTES, SEAL_BYTES, SealHead};
use flitcast_proto::wire::{LENGTH_BYTES, MAX_FLIT_PREFIX, WireError};
use flitcast_proto::{PeId, Time};
use tokio::io::{AsyncRead as _, AsyncWrite as _, AsyncWriteExt as _, ReadBuf};

use crate::activity_monitor::ActivityMonitor;
use crate::counters::{Counters, EdgeCounter};
use crate::pacer::Pacer;
use crate::readiness::Readiness;
use crate::security::{Name, Transport};
use crate::shape::Shape;
use crate::system::retransmissions::Ends;
use crate::system::sockets;
pub use error::LinkError;

/// A connection to one neighbour.
#[derive(Debug)]
pub struct Link {
    peer: PeId,
    addr: SocketAddr,
    stream: Transport,
    reader: FrameReader,
    readiness: Readiness,
    sealer: FrameSealer,
    /// Number of duplicate frames since the last query.
    repeated: u64,
    /// Buffer for control frames, kept to reuse its memory.
    scratch: Vec<u8>,
    /// The unwritten part of a frame.
    rest: PendingWrite,
    /// Boxed: few links have one, and all links are moved.
    shape: Option<Box<Shape>>,
    pacer: Option<Pacer>,
    pulse: Arc<ActivityMonitor>,
    counter: Arc<EdgeCounter>,
}

/// The departure of a frame on a shaped link, and whether it joins the packet of the last flit.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    at: Time,
    joins: bool,
}

/// The part of a frame that the connection has not accepted yet.
#[derive(Debug, Default)]
struct PendingWrite {
    /// Prefix and payload of a flit's frame that waits for its departure, on a shaped link, and
    /// whether it joins the packet of the last one.
    waits: Option<(bool, [Vec<u8>; 2])>,
    /// Bytes, and the number of those that are written.
    bytes: Vec<u8>,
    gone: usize,
    /// Whether nothing is left in the TLS buffer.
    is_flushed: bool,
    /// Whether the frame waits to be coalesced with others.
    gathers: bool,
}

impl Link {
    /// Creates a link for frames with a payload of at most `flit_bytes`.
    pub fn new(peer: PeId, stream: Transport, flit_bytes: u32) -> io::Result<Link> {
        stream.socket().set_nodelay(true)?;
        Ok(Link {
            peer,
            addr: stream.peer_addr()?,
            stream,
            reader: FrameReader::new(flit_bytes as usize + MAX_FLIT_PREFIX),
            readiness: Readiness::default(),
            sealer: FrameSealer::default(),
            repeated: 0,
            scratch: Vec::new(),
            rest: PendingWrite::default(),
            shape: None,
            pacer: None,
            pulse: Arc::default(),
            counter: Arc::default(),
        })
    }

    /// Reports activity to `pulse` from now on.
    pub fn watch(&mut self, pulse: Arc<ActivityMonitor>) {
        if let Ok(local) = self.stream.socket().local_addr() {
            pulse.has_edge(self.peer, local, self.addr);
        }
        self.pulse = pulse;
    }

    /// Counts all frames in these counters from now on.
    pub fn count(&mut self, counters: &Counters) {
        self.counter = counters.edge(self.peer);
    }

    /// Shapes the link in both directions, from the next frame on. Its other end must do the same.
    pub fn shape(&mut self, shape: Shape) {
        self.reader.read_singly();
        self.shape = Some(Box::new(shape));
    }

    /// Paces flits from now on, or stops pacing. Flits on a shaped link have their own times.
    pub fn pace(&mut self, pacer: Option<Pacer>) {
        self.pacer = pacer.filter(|_| self.shape.is_none());
    }

    /// Returns the neighbour.
    pub fn peer(&self) -> PeId {
        self.peer
    }

    /// Returns the addresses of this end and of the other.
    ///
    /// # Errors
    ///
    /// Returns the error of the operating system.
    pub fn ends(&self) -> io::Result<Ends> {
        Ok((self.stream.socket().local_addr()?, self.addr))
    }

    /// Identifies the neighbour, which may send flits from now on.
    ///
    /// # Errors
    ///
    /// Returns an error if the certificate has another name.
    pub fn authenticate_peer(&mut self, peer: PeId, flit_bytes: u32) -> Result<(), String> {
        self.stream.shown().is_of(Name::Pe(peer))?;
        self.peer = peer;
        self.set_max_flit_bytes(flit_bytes);
        Ok(())
    }

    /// Sets the maximum payload of a frame.
    pub fn set_max_flit_bytes(&mut self, flit_bytes: u32) {
        self.reader.grow(flit_bytes as usize + MAX_FLIT_PREFIX);
    }

    /// Names this link in an error of the operating system.
    pub fn failed(&self, source: io::Error) -> LinkError {
        let (peer, addr) = (self.peer, self.addr);
        match sockets::is_unreachable(&source) {
            true => LinkError::Unreached { peer, addr, source },
            false => LinkError::Io { peer, addr, source },
        }
    }

    /// Enables TCP keep-alive: the operating system probes the neighbour's every second without a
    /// received byte, and fails the connection after as many unanswered probes as the silence limit has
    /// seconds. Hosts answer, whatever their processes do.
    pub fn keep_alive(&self, silence: Duration) -> io::Result<()> {
        let questions = silence.as_secs_f64().ceil().clamp(1.0, 127.0);
        sockets::keep_alive(self.stream.socket(), questions as u32)
    }

    /// Returns the error of a failed connection, which is not reported to a PE that does not read from
    /// it.
    pub fn look(&self) -> Result<(), LinkError> {
        let failed = self.stream.socket().take_error();
        failed
            .and_then(|failed| failed.map_or(Ok(()), Err))
            .map_err(|e| self.failed(e))
    }

    /// Names this link in an error about a received frame.
    pub fn wire(&self, source: WireError) -> LinkError {
        LinkError::Wire {
            peer: self.peer,
            addr: self.addr,
            source,
        }
    }

    /// Returns the number of dropped duplicates since the last call.
    pub fn take_repeated(&mut self) -> u64 {
        std::mem::take(&mut self.repeated)
    }

    /// Waits for a complete frame; [`Link::body`] then returns it until [`Link::consume`].
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        ready!(self.poll_stamped(cx))?;
        let Some(shape) = &mut self.shape else {
            return Poll::Ready(Ok(()));
        };
        let is_flit = is_flit(self.reader.body());
        let arrival = shape.poll_arrival(cx, is_flit, self.reader.frame_bytes());
        self.pulse.on_clock(arrival.is_pending());
        arrival.map_err(|e| self.failed(e))
    }

    /// Waits for a complete frame that is not a stamp, even before its arrival time.
    fn poll_stamped(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        loop {
            ready!(self.poll_whole(cx))?;
            match &mut self.shape {
                Some(shape) if shape.wants_stamp() => {
                    if let Err(error) = shape.stamped(self.reader.body()) {
                        return Poll::Ready(Err(self.wire(error)));
                    }
                    self.reader.consume();
                }
                _ => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Returns whether nothing has arrived since everything was read. If so, `cx` is woken at the next
    /// arrival.
    pub fn is_quiet(&mut self, cx: &Context<'_>) -> bool {
        self.readiness.is_quiet(cx.waker())
    }

    /// Waits for a complete frame that is not a duplicate; it may be a stamp.
    fn poll_whole(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        if self.is_quiet(cx) {
            return Poll::Pending;
        }
        loop {
            match self.reader.look() {
                Ok(Look::Open) => return Poll::Ready(Ok(())),
                Ok(Look::New) => {
                    let is_flit = is_flit(self.reader.body());
                    self.counter.received(self.reader.frame_bytes(), is_flit);
                    return Poll::Ready(Ok(()));
                }
                Ok(Look::Repeated { bytes }) => {
                    self.repeated += 1;
                    self.counter.repeated(bytes);
                    continue;
                }
                Ok(Look::Incomplete) => {}
                Err(error) => return Poll::Ready(Err(self.wire(error))),
            }
            let mut space = ReadBuf::new(self.reader.space());
            let mut asked = Context::from_waker(self.readiness.ask(cx.waker()));
            let read = Pin::new(&mut self.stream).poll_read(&mut asked, &mut space);
            if read.is_ready() {
                self.readiness.had_something();
            }
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

    /// Waits for a complete frame.
    pub async fn next_frame(&mut self) -> Result<(), LinkError> {
        std::future::poll_fn(|cx| self.poll_frame(cx)).await
    }

    /// Returns the length of the current frame on the wire.
    pub fn frame_bytes(&self) -> usize {
        self.reader.frame_bytes()
    }

    /// Returns the protobuf message of the current frame, without its seal.
    pub fn body(&self) -> &[u8] {
        self.reader.body()
    }

    /// Releases the current frame.
    pub fn consume(&mut self) {
        self.reader.consume();
        if let Some(shape) = &mut self.shape {
            shape.consumed();
        }
    }

    /// Waits for a control frame and takes it.
    pub async fn next_control(&mut self) -> Result<EdgeFrame, LinkError> {
        self.next_frame().await?;
        let frame = EdgeFrame::parse(self.body()).map_err(|e| self.wire(e))?;
        self.consume();
        Ok(frame)
    }

    /// Returns the number of bytes in the kernel that have arrived but were not read. On a shaped link,
    /// bytes that are still on the emulated wire do not count.
    pub fn waiting_bytes(&mut self) -> u64 {
        if self.shape.is_some() {
            // The first frame's stamp contains its time. An error in it is reported by the next wait
            // for the frame.
            let _ = self.poll_stamped(&mut Context::from_waker(Waker::noop()));
        }
        let waiting = self.stream.waiting_bytes();
        let held = self.reader.held_bytes() as u64;
        let Some(shape) = &self.shape else {
            return waiting + held;
        };
        shape.landed(waiting + held, held)
    }

    /// Returns the number of received bytes of an incomplete frame. On a shaped link a frame arrives at
    /// once.
    pub fn partial_bytes(&self) -> u64 {
        match self.shape {
            Some(_) => 0,
            None => self.reader.held_bytes() as u64,
        }
    }

    /// Returns the stamp of a control frame on a shaped link: a few bytes wait for no port.
    fn control_stamp(&mut self, bytes: usize) -> Option<Stamp> {
        let at = self.shape.as_mut().map(|shape| shape.slip_in(bytes));
        at.map(|at| Stamp { at, joins: false })
    }

    /// Sends a control frame.
    pub async fn send_control(&mut self, frame: &EdgeFrame) -> Result<(), LinkError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        frame.put(&mut scratch);
        let stamp = self.control_stamp(scratch.len() + SEAL_BYTES);
        let sent = self.write(stamp, &scratch[LENGTH_BYTES..], &[]).await;
        self.scratch = scratch;
        sent.map_err(|e| self.failed(e))
    }

    /// Forwards a frame's message that arrived on another link.
    pub async fn send_body(&mut self, body: &[u8]) -> Result<(), LinkError> {
        self.send(body, &[]).await
    }

    /// Sends a flit: its prefix, and its payload without a copy.
    pub async fn send_flit(&mut self, prefix: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        // The seal contains a length.
        self.send(&prefix[LENGTH_BYTES..], payload).await
    }

    async fn send(&mut self, prefix: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        let bytes = HEAD_BYTES + prefix.len() + payload.len();
        let departs = std::future::poll_fn(|cx| self.poll_depart(cx, false, bytes)).await;
        let departs = departs.map_err(|e| self.failed(e))?;
        let sent = self.write(departs, prefix, payload).await;
        sent.map_err(|e| self.failed(e))
    }

    /// Waits until a flit's frame of this length may depart; returns its stamp on a shaped link.
    fn poll_depart(
        &mut self,
        cx: &mut Context<'_>,
        joins: bool,
        bytes: usize,
    ) -> Poll<io::Result<Option<Stamp>>> {
        match &mut self.shape {
            Some(shape) => {
                let departs = shape.poll_depart(cx, joins, bytes);
                departs.map_ok(|at| Some(Stamp { at, joins }))
            }
            None => Poll::Ready(Ok(None)),
        }
    }

    /// Starts to send a flit, which may join the packet of the last one, and returns whether all of it
    /// is written. The rest is stored here until [`Link::poll_sent`] has written it; no other frame may
    /// be sent before.
    pub fn begin_flit(
        &mut self,
        joins: bool,
        prefix: &[u8],
        payload: &[u8],
    ) -> Result<bool, LinkError> {
        let begun = self.begin(joins, &prefix[LENGTH_BYTES..], payload);
        begun.map_err(|e| self.failed(e))
    }

    /// Starts to forward a frame's message that arrived on another link; otherwise like
    /// [`Link::begin_flit`].
    pub fn begin_body(&mut self, joins: bool, body: &[u8]) -> Result<bool, LinkError> {
        let begun = self.begin(joins, body, &[]);
        begun.map_err(|e| self.failed(e))
    }

    fn begin(&mut self, joins: bool, prefix: &[u8], payload: &[u8]) -> io::Result<bool> {
        let mut cx = Context::from_waker(Waker::noop());
        let bytes = HEAD_BYTES + prefix.len() + payload.len();
        let Poll::Ready(departs) = self.poll_depart(&mut cx, joins, bytes)? else {
            self.rest.waits = Some((joins, [prefix.to_vec(), payload.to_vec()]));
            return Ok(false);
        };
        self.put(&mut cx, departs, true, [prefix, payload])
    }

    /// Writes a frame after the stored rest of the last one.
    fn put(
        &mut self,
        cx: &mut Context<'_>,
        stamp: Option<Stamp>,
        is_flit: bool,
        [prefix, payload]: [&[u8]; 2],
    ) -> io::Result<bool> {
        let (stamp, head) = self.sealed(stamp, prefix, payload);
        let parts: [&[u8]; 4] = [&stamp, &head, prefix, payload];
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if self.rest.gathers && self.rest.bytes.len() + bytes <= COALESCE_LIMIT_BYTES {
            for part in parts {
                self.rest.bytes.extend_from_slice(part);
            }
            self.rest.is_flushed = false;
            return Ok(true);
        }
        let mut written = 0;
        if self.rest.bytes.is_empty() && !(is_flit && self.pacer.is_some()) {
            let slices = parts.map(IoSlice::new);
            let sent = Pin::new(&mut self.stream).poll_write_vectored(cx, &slices);
            if let Poll::Ready(sent) = sent? {
                written = sent;
                self.pulse.moved();
            }
        }
        self.rest.is_flushed = false;
        for part in parts {
            let left = &part[written.min(part.len())..];
            self.rest.bytes.extend_from_slice(left);
            written -= part.len() - left.len();
        }
        Ok(self.poll_rest(cx)?.is_ready())
    }

    /// Coalesces consecutive short frames into one system call, until [`Link::flush_gathered`]. Frames with a
    /// departure time are not coalesced.
    pub fn gather(&mut self) {
        self.rest.gathers = self.shape.is_none() && self.pacer.is_none();
    }

    /// Writes the coalesced frames, as far as the connection accepts them.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection has failed.
    pub fn flush_gathered(&mut self) -> Result<(), LinkError> {
        self.rest.gathers = false;
        match self.poll_sent(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Ok(()),
        }
    }

    /// Starts to send a control frame, even while a flit is in progress, but never inside another
    /// frame.
    pub fn begin_control(&mut self, frame: &EdgeFrame) -> Result<(), LinkError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        frame.put(&mut scratch);
        let stamp = self.control_stamp(scratch.len() + SEAL_BYTES);
        let mut cx = Context::from_waker(Waker::noop());
        // A few bytes wait for no pacer.
        let begun = self.put(&mut cx, stamp, false, [&scratch[LENGTH_BYTES..], &[]]);
        self.scratch = scratch;
        begun.map(|_| ()).map_err(|e| self.failed(e))
    }

    /// Waits until all started frames are written.
    pub fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        match self.rest.waits.is_none() && self.rest.bytes.is_empty() && self.rest.is_flushed {
            true => Poll::Ready(Ok(())),
            false => self.poll_rest(cx).map_err(|e| self.failed(e)),
        }
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some((joins, [prefix, payload])) = self.rest.waits.take() {
            let bytes = HEAD_BYTES + prefix.len() + payload.len();
            let Poll::Ready(departs) = self.poll_depart(cx, joins, bytes)? else {
                self.rest.waits = Some((joins, [prefix, payload]));
                return Poll::Pending;
            };
            let (stamp, head) = self.sealed(departs, &prefix, &payload);
            for part in [&stamp, head.as_slice(), &prefix, &payload] {
                self.rest.bytes.extend_from_slice(part);
            }
        }
        let PendingWrite { bytes, gone, .. } = &mut self.rest;
        while *gone < bytes.len() {
            let mut next = &bytes[*gone..];
            if let Some(pacer) = &self.pacer {
                next = &next[..ready!(pacer.poll_take(cx, next.len()))?];
            }
            let sent = Pin::new(&mut self.stream).poll_write(cx, next);
            match ready!(sent)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => {
                    *gone += sent;
                    if let Some(pacer) = &self.pacer {
                        pacer.took(sent);
                    }
                }
            }
            self.pulse.moved();
        }
        bytes.clear();
        *gone = 0;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.rest.is_flushed = true;
        Poll::Ready(Ok(()))
    }

    /// Returns the bytes before a message in two pieces: its seal and, on a shaped link, a stamp before
    /// that.
    fn sealed(
        &mut self,
        departs: Option<Stamp>,
        prefix: &[u8],
        payload: &[u8],
    ) -> (Vec<u8>, SealHead) {
        let mut stamp = Vec::new();
        if let Some(Stamp { at, joins }) = departs {
            EdgeFrame::Departed { at, joins }.put(&mut stamp);
            stamp = self.sealer.sealed(&stamp);
        }
        let head = self.sealer.seal([prefix, payload]);
        let bytes = stamp.len() + head.len() + prefix.len() + payload.len();
        self.counter.sent(bytes, is_flit(prefix));
        (stamp, head)
    }

    /// Writes a message in two pieces under its seal.
    async fn write(
        &mut self,
        departs: Option<Stamp>,
        prefix: &[u8],
        payload: &[u8],
    ) -> io::Result<()> {
        let (stamp, head) = self.sealed(departs, prefix, payload);
        self.write_parts([&stamp, &head, prefix, payload]).await
    }

    async fn write_parts(&mut self, parts: [&[u8]; 4]) -> io::Result<()> {
        let stream = &mut self.stream;
        let _waiting = self.pulse.doing(Doing::Sending(self.peer));
        let mut parts = parts.map(IoSlice::new);
        let mut rest = &mut parts[..];
        // Removes empty slices at the front.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            let sent = stream.write_vectored(rest).await?;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.pulse.moved();
            IoSlice::advance_slices(&mut rest, sent);
        }
        // With TLS, the end of the frame may still be in its buffer.
        stream.flush().await
    }
}

#[cfg(test)]
mod tests;
