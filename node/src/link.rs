//! The connection to one neighbour: frames in, frames out.
//!
//! Every frame is sent under a seal (`flitcast_proto::wire::seal`) and returned without it; a duplicate
//! of any frame is dropped here. `flitcast_proto::wire::reader` decides how much is read at once.
//!
//! A link may be shaped (`shape.rs`). Then every frame follows a stamp, which is a separate frame and
//! is not returned, and a frame is only returned after its arrival time.

mod sending;

use std::fmt;
use std::io::{self};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::flit::is_flit;
use flitcast_proto::wire::reader::{FrameReader, Look};
use flitcast_proto::wire::seal::FrameSealer;
use flitcast_proto::wire::{MAX_FLIT_PREFIX, WireError, packed};
use flitcast_proto::{Compression, PeId};
use sending::PendingWrite;
use thiserror::Error;
use tokio::io::{AsyncRead as _, ReadBuf};

use crate::activity_monitor::ActivityMonitor;
use crate::counters::{Counters, EdgeCounter};
use crate::pacer::Pacer;
use crate::packing::FlitPacking;
use crate::readiness::Readiness;
use crate::security::{Name, Transport};
use crate::shape::Shape;
use crate::system::retransmissions::Ends;
use crate::system::sockets::{self, is_closed};

pub use sending::Outgoing;

#[derive(Debug)]
pub struct Link {
    at: Neighbour,
    stream: Transport,
    reader: FrameReader,
    readiness: Readiness,
    sealer: FrameSealer,
    /// Number of duplicate frames since the last query.
    repeated: u64,
    /// Buffer for control frames, kept to reuse its memory.
    scratch: Vec<u8>,
    /// The unwritten part of begun frames.
    rest: PendingWrite,
    /// Boxed: few links have one, and all links are moved.
    shape: Option<Box<Shape>>,
    pacer: Option<Pacer>,
    /// Boxed, like the shape; `None` unless flits are compressed.
    packing: Option<Box<FlitPacking>>,
    pulse: Arc<ActivityMonitor>,
    counter: Arc<EdgeCounter>,
}

impl Link {
    /// Creates a link for frames with a payload of at most `flit_bytes`.
    pub fn new(peer: PeId, stream: Transport, flit_bytes: u32) -> io::Result<Link> {
        stream.socket().set_nodelay(true)?;
        let addr = stream.socket().peer_addr()?;
        Ok(Link {
            at: Neighbour { peer, addr },
            stream,
            reader: FrameReader::new(flit_bytes as usize + MAX_FLIT_PREFIX),
            readiness: Readiness::default(),
            sealer: FrameSealer::default(),
            repeated: 0,
            scratch: Vec::new(),
            rest: PendingWrite::default(),
            shape: None,
            pacer: None,
            packing: None,
            pulse: Arc::default(),
            counter: Arc::default(),
        })
    }

    /// Reports activity to `pulse` from now on.
    pub fn watch(&mut self, pulse: Arc<ActivityMonitor>) {
        if let Ok(ends) = self.ends() {
            pulse.has_edge(self.peer(), ends);
        }
        self.pulse = pulse;
    }

    pub fn count(&mut self, counters: &Counters) {
        self.counter = counters.edge(self.peer());
    }

    /// Shapes the link in both directions, from the next frame on. Its other end must do the same.
    pub fn shape(&mut self, shape: Shape) {
        self.reader.read_singly();
        self.shape = Some(Box::new(shape));
    }

    /// Compresses flits from now on where that makes them shorter, and accepts compressed ones. The other end
    /// must do the same.
    pub fn compress(&mut self, compression: Compression) {
        self.packing =
            (compression != Compression::Never).then(|| Box::new(FlitPacking::new(compression)));
    }

    /// Paces flits from now on, or stops pacing. Flits on a shaped link have their own times.
    pub fn pace(&mut self, pacer: Option<Pacer>) {
        self.pacer = pacer.filter(|_| self.shape.is_none());
    }

    pub fn peer(&self) -> PeId {
        self.at.peer
    }

    /// Returns the addresses of this end and of the other.
    pub fn ends(&self) -> io::Result<Ends> {
        Ok((self.stream.socket().local_addr()?, self.at.addr))
    }

    /// Identifies the neighbour, which may send flits from now on, if its certificate has that name.
    pub fn authenticate_peer(&mut self, peer: PeId, flit_bytes: u32) -> Result<(), String> {
        self.stream.is_of(Name::Pe(peer))?;
        self.at.peer = peer;
        self.set_max_flit_bytes(flit_bytes);
        Ok(())
    }

    pub fn set_max_flit_bytes(&mut self, flit_bytes: u32) {
        self.reader.grow(flit_bytes as usize + MAX_FLIT_PREFIX);
    }

    /// Has the memory for received frames with this payload ready.
    pub fn touch_memory(&mut self, flit_bytes: u32) {
        self.reader.touch(flit_bytes as usize + MAX_FLIT_PREFIX);
    }

    /// Names this link in an error of the operating system.
    pub fn failed(&self, source: io::Error) -> LinkError {
        match sockets::is_unreachable(&source) {
            true => LinkError::Unreached(self.at, source),
            false => LinkError::Io(self.at, source),
        }
    }

    /// Enables TCP keep-alive: the operating system probes the neighbour's every second without a
    /// received byte, and fails the connection after as many unanswered probes as the silence limit has
    /// seconds. Hosts answer, whatever their processes do.
    pub fn keep_alive(&self, silence: Duration) -> io::Result<()> {
        sockets::keep_alive(self.stream.socket(), silence)
    }

    /// Returns the error of a failed connection, which is not reported to a PE that does not read from
    /// it.
    pub fn look(&self) -> Result<(), LinkError> {
        match self.stream.socket().take_error() {
            Ok(None) => Ok(()),
            Ok(Some(error)) | Err(error) => Err(self.failed(error)),
        }
    }

    /// Names this link in an error about a received frame.
    pub fn wire(&self, source: WireError) -> LinkError {
        LinkError::Wire(self.at, source)
    }

    /// Returns the error that a received frame is not one that the protocol permits here.
    pub fn malformed(&self, what: &str) -> LinkError {
        self.wire(WireError::Malformed(what.to_owned()))
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
        let is_flit = is_any_flit(self.reader.body());
        let arrival = shape.poll_arrival(cx, is_flit, self.reader.frame_bytes());
        self.pulse.on_clock(arrival.is_pending());
        arrival.map_err(|e| self.failed(e))
    }

    /// Waits for a complete frame that is not a stamp, even before its arrival time.
    fn poll_stamped(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        loop {
            ready!(self.poll_whole(cx))?;
            match &mut self.shape {
                Some(shape) if shape.expects_stamp() => {
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
                    let is_flit = is_any_flit(self.reader.body());
                    self.counter.received(self.reader.frame_bytes(), is_flit);
                    return Poll::Ready(self.unpack());
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
            let mut context = Context::from_waker(self.readiness.waker_for(cx.waker()));
            let read = Pin::new(&mut self.stream).poll_read(&mut context, &mut space);
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

    /// Decompresses the current frame, if it is a compressed flit.
    fn unpack(&mut self) -> Result<(), LinkError> {
        let body = self.reader.body();
        let Some(packing) = &mut self.packing else {
            return Ok(());
        };
        if !packed::is_packed(body) {
            return Ok(());
        }
        let limit = self.reader.max_body();
        let unpacked = packed::unpack(body, limit, &mut packing.unpacked);
        packing.is_unpacked = unpacked.is_ok();
        unpacked.map_err(|error| LinkError::Wire(self.at, error))
    }

    fn closed(&self) -> LinkError {
        match self.reader.progress() {
            (0, _) => LinkError::Closed(self.at),
            (got, expected) => LinkError::Truncated(self.at, got, expected),
        }
    }

    pub async fn next_frame(&mut self) -> Result<(), LinkError> {
        std::future::poll_fn(|cx| self.poll_frame(cx)).await
    }

    /// Returns the length of the current frame on the wire.
    pub fn frame_bytes(&self) -> usize {
        self.reader.frame_bytes()
    }

    /// Returns the protobuf message of the current frame, without its seal.
    pub fn body(&self) -> &[u8] {
        match &self.packing {
            Some(packing) if packing.is_unpacked => &packing.unpacked,
            _ => self.reader.body(),
        }
    }

    /// Returns the current flit as it is sent on: compressed, if it has arrived so.
    pub fn forwarded(&self) -> Outgoing<'_> {
        Outgoing::forwarded(self.reader.body())
    }

    /// Releases the current frame.
    pub fn consume(&mut self) {
        self.reader.consume();
        if let Some(packing) = &mut self.packing {
            packing.is_unpacked = false;
        }
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
}

/// Returns whether a frame's body is a flit, compressed or not.
fn is_any_flit(body: &[u8]) -> bool {
    is_flit(body) || packed::is_packed(body)
}

/// A neighbour with its address.
#[derive(Clone, Copy, Debug)]
pub struct Neighbour {
    pub peer: PeId,
    pub addr: SocketAddr,
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.peer, self.addr)
    }
}

#[derive(Debug, Error)]
pub enum LinkError {
    #[error("{0} closed the connection")]
    Closed(Neighbour),
    #[error("{0} closed the connection inside a frame, {1} of {2} bytes")]
    Truncated(Neighbour, usize, usize),
    #[error("the connection to {0} failed: {1}")]
    Io(Neighbour, #[source] io::Error),
    /// The neighbour's host does not answer, or there is no route to it.
    #[error("{0} cannot be reached any more: {1}")]
    Unreached(Neighbour, #[source] io::Error),
    /// The received frame violates the protocol.
    #[error("from {0}: {1}")]
    Wire(Neighbour, #[source] WireError),
}

impl LinkError {
    /// Returns whether the neighbour's process has ended the connection; its host and its frames are
    /// valid.
    pub fn is_hung_up(&self) -> bool {
        match self {
            LinkError::Closed(_) | LinkError::Truncated(..) => true,
            LinkError::Io(_, error) => is_closed(error),
            LinkError::Unreached(..) | LinkError::Wire(..) => false,
        }
    }

    pub fn peer(&self) -> PeId {
        match self {
            LinkError::Closed(at)
            | LinkError::Truncated(at, ..)
            | LinkError::Io(at, _)
            | LinkError::Unreached(at, _)
            | LinkError::Wire(at, _) => at.peer,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
