//! The connection to one neighbour: frames in, frames out.
//!
//! Every frame goes out under a seal (`flitcast_proto::wire::seal`) and is shown without
//! it; one that has come before is dropped here, whatever it is. How much is read at once is the
//! reader's business (`flitcast_proto::wire::reader`).
//!
//! A link may be shaped (`shape.rs`): then every frame has a stamp ahead of it, which
//! is a frame of its own and is not shown, and is shown itself when it has arrived.

mod error;

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use flitcast_proto::ops::GATHERED_BYTES;
use flitcast_proto::wire::control::Doing;
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::flit::is_flit;
use flitcast_proto::wire::reader::{FrameReader, Look};
use flitcast_proto::wire::seal::{HEAD_BYTES, SEAL_BYTES, SealHead, Sealer};
use flitcast_proto::wire::{LENGTH_BYTES, MAX_FLIT_PREFIX, WireError};
use flitcast_proto::{PeId, Time};
use tokio::io::{AsyncRead as _, AsyncWrite as _, AsyncWriteExt as _, ReadBuf};

use crate::counters::{Counters, EdgeCounter};
use crate::pacer::Pacer;
use crate::pulse::Pulse;
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
    sealer: Sealer,
    /// Frames that came again, since somebody asked.
    repeated: u64,
    /// Where control frames are put together; kept for its memory.
    scratch: Vec<u8>,
    /// Of a frame that is under way.
    rest: Rest,
    /// Boxed: few links have one, and all are moved about.
    shape: Option<Box<Shape>>,
    pacer: Option<Pacer>,
    pulse: Arc<Pulse>,
    counter: Arc<EdgeCounter>,
}

/// What a connection has not taken yet of a frame.
#[derive(Debug, Default)]
struct Rest {
    /// Prefix and payload of a frame that waits for its departure, on a shaped link.
    waits: Option<[Vec<u8>; 2]>,
    /// Bytes, and how many of them have gone.
    bytes: Vec<u8>,
    gone: usize,
    /// Where it was encrypted, the end of it may still be there.
    is_flushed: bool,
    /// It waits for others, to go with them.
    gathers: bool,
}

impl Link {
    /// A link for frames with a payload of at most `flit_bytes`.
    pub fn new(peer: PeId, stream: Transport, flit_bytes: u32) -> io::Result<Link> {
        stream.socket().set_nodelay(true)?;
        Ok(Link {
            peer,
            addr: stream.peer_addr()?,
            stream,
            reader: FrameReader::new(flit_bytes as usize + MAX_FLIT_PREFIX),
            readiness: Readiness::default(),
            sealer: Sealer::default(),
            repeated: 0,
            scratch: Vec::new(),
            rest: Rest::default(),
            shape: None,
            pacer: None,
            pulse: Arc::default(),
            counter: Arc::default(),
        })
    }

    /// Tells `pulse` what it does, from now on.
    pub fn watch(&mut self, pulse: Arc<Pulse>) {
        if let Ok(local) = self.stream.socket().local_addr() {
            pulse.has_edge(self.peer, local, self.addr);
        }
        self.pulse = pulse;
    }

    /// From now on, what crosses it is counted there.
    pub fn count(&mut self, counters: &Counters) {
        self.counter = counters.edge(self.peer);
    }

    /// Gives the link a shape, from the next frame on, in both directions. Its other
    /// end must do the same.
    pub fn shape(&mut self, shape: Shape) {
        self.reader.read_singly();
        self.shape = Some(Box::new(shape));
    }

    /// From now on flits go as this lets them, or at once. Those over a shaped link have times of
    /// their own.
    pub fn pace(&mut self, pacer: Option<Pacer>) {
        self.pacer = pacer.filter(|_| self.shape.is_none());
    }

    /// Who is at the other end.
    pub fn peer(&self) -> PeId {
        self.peer
    }

    /// The addresses of this end and of the other.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn ends(&self) -> io::Result<Ends> {
        Ok((self.stream.socket().local_addr()?, self.addr))
    }

    /// The neighbour has said who it is: from now on it may send flits.
    ///
    /// # Errors
    ///
    /// Its certificate is for somebody else.
    pub fn is_known_to_be(&mut self, peer: PeId, flit_bytes: u32) -> Result<(), String> {
        self.stream.shown().is_of(Name::Pe(peer))?;
        self.peer = peer;
        self.take_flits_of(flit_bytes);
        Ok(())
    }

    /// From now on, a frame may have a payload of `flit_bytes`.
    pub fn take_flits_of(&mut self, flit_bytes: u32) {
        self.reader.grow(flit_bytes as usize + MAX_FLIT_PREFIX);
    }

    /// Names this link in what the operating system says of it.
    pub fn failed(&self, source: io::Error) -> LinkError {
        let (peer, addr) = (self.peer, self.addr);
        match sockets::is_unreachable(&source) {
            true => LinkError::Unreached { peer, addr, source },
            false => LinkError::Io { peer, addr, source },
        }
    }

    /// From now on the operating system asks the neighbour's every second that nothing
    /// comes from there, and fails the connection when as many questions as the silence
    /// limit has seconds had no answer. Hosts answer, whatever their processes do.
    pub fn keep_alive(&self, silence: Duration) -> io::Result<()> {
        let questions = silence.as_secs_f64().ceil().clamp(1.0, 127.0);
        sockets::keep_alive(self.stream.socket(), questions as u32)
    }

    /// Whether the connection has failed, which who does not read is not told.
    pub fn look(&self) -> Result<(), LinkError> {
        let failed = self.stream.socket().take_error();
        failed
            .and_then(|failed| failed.map_or(Ok(()), Err))
            .map_err(|e| self.failed(e))
    }

    /// Names this link in an error about what came over it.
    pub fn wire(&self, source: WireError) -> LinkError {
        LinkError::Wire {
            peer: self.peer,
            addr: self.addr,
            source,
        }
    }

    /// Frames that had come before and were dropped, since this was asked last.
    pub fn take_repeated(&mut self) -> u64 {
        std::mem::take(&mut self.repeated)
    }

    /// Waits for a whole frame; [`Link::body`] then shows it until [`Link::consume`].
    pub fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        ready!(self.poll_stamped(cx))?;
        let Some(shape) = &mut self.shape else {
            return Poll::Ready(Ok(()));
        };
        let flits = u64::from(is_flit(self.reader.body()));
        let arrival = shape.poll_arrival(cx, flits, self.reader.frame_bytes());
        self.pulse.on_clock(arrival.is_pending());
        arrival.map_err(|e| self.failed(e))
    }

    /// Waits for a whole frame that is no stamp, wherever it nominally is.
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

    /// Whether nothing has come since all that had was read. If so, `cx` hears when something does.
    pub fn is_quiet(&mut self, cx: &Context<'_>) -> bool {
        self.readiness.is_quiet(cx.waker())
    }

    /// Waits for a whole frame that has not come before, stamps among them.
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

    /// Waits for a whole frame.
    pub async fn next_frame(&mut self) -> Result<(), LinkError> {
        std::future::poll_fn(|cx| self.poll_frame(cx)).await
    }

    /// The bytes that the frame that is there has on the wire.
    pub fn frame_bytes(&self) -> usize {
        self.reader.frame_bytes()
    }

    /// The protobuf message of the frame that is there, without its seal.
    pub fn body(&self) -> &[u8] {
        self.reader.body()
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
        let waiting = self.stream.waiting_bytes();
        let held = self.reader.held_bytes() as u64;
        let Some(shape) = &self.shape else {
            return waiting + held;
        };
        shape.landed(waiting + held, held)
    }

    /// Bytes that are here of a frame that is not whole. Over a shaped link a frame comes whole.
    pub fn partial_bytes(&self) -> u64 {
        match self.shape {
            Some(_) => 0,
            None => self.reader.held_bytes() as u64,
        }
    }

    /// Sends a frame that is no flit.
    pub async fn send_control(&mut self, frame: &EdgeFrame) -> Result<(), LinkError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        frame.put(&mut scratch);
        let stamp = self.shape.as_mut().map(|shape| {
            // A few bytes wait for no port.
            shape.slip_in(scratch.len() + SEAL_BYTES)
        });
        let sent = self.write(stamp, &scratch[LENGTH_BYTES..], &[]).await;
        self.scratch = scratch;
        sent.map_err(|e| self.failed(e))
    }

    /// Passes on a frame's message, which came over another link.
    pub async fn send_body(&mut self, body: &[u8]) -> Result<(), LinkError> {
        self.send(body, &[]).await
    }

    /// Sends a flit: its prefix, and its payload from where it lies.
    pub async fn send_flit(&mut self, prefix: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        // The seal has a length of its own.
        self.send(&prefix[LENGTH_BYTES..], payload).await
    }

    async fn send(&mut self, prefix: &[u8], payload: &[u8]) -> Result<(), LinkError> {
        let bytes = HEAD_BYTES + prefix.len() + payload.len();
        let departs = std::future::poll_fn(|cx| self.poll_depart(cx, bytes)).await;
        let departs = departs.map_err(|e| self.failed(e))?;
        let sent = self.write(departs, prefix, payload).await;
        sent.map_err(|e| self.failed(e))
    }

    /// Waits until a frame of so many bytes may depart; when it does, on a shaped link.
    fn poll_depart(
        &mut self,
        cx: &mut Context<'_>,
        bytes: usize,
    ) -> Poll<io::Result<Option<Time>>> {
        match &mut self.shape {
            Some(shape) => shape.poll_depart(cx, bytes).map_ok(Some),
            None => Poll::Ready(Ok(None)),
        }
    }

    /// Begins to send a flit; whether all of it has gone. What has not waits here, and
    /// [`Link::poll_sent`] tells when it has: nothing else is to be sent before.
    pub fn begin_flit(&mut self, prefix: &[u8], payload: &[u8]) -> Result<bool, LinkError> {
        let begun = self.begin(&prefix[LENGTH_BYTES..], payload);
        begun.map_err(|e| self.failed(e))
    }

    /// The same of a frame's message, which came over another link.
    pub fn begin_body(&mut self, body: &[u8]) -> Result<bool, LinkError> {
        let begun = self.begin(body, &[]);
        begun.map_err(|e| self.failed(e))
    }

    fn begin(&mut self, prefix: &[u8], payload: &[u8]) -> io::Result<bool> {
        let mut cx = Context::from_waker(Waker::noop());
        let bytes = HEAD_BYTES + prefix.len() + payload.len();
        let Poll::Ready(departs) = self.poll_depart(&mut cx, bytes)? else {
            self.rest.waits = Some([prefix.to_vec(), payload.to_vec()]);
            return Ok(false);
        };
        self.put(&mut cx, departs, true, [prefix, payload])
    }

    /// Hands a frame to the connection, behind what that has not taken yet.
    fn put(
        &mut self,
        cx: &mut Context<'_>,
        departs: Option<Time>,
        is_flit: bool,
        [prefix, payload]: [&[u8]; 2],
    ) -> io::Result<bool> {
        let (stamp, head) = self.sealed(departs, prefix, payload);
        let parts: [&[u8]; 4] = [&stamp, &head, prefix, payload];
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if self.rest.gathers && self.rest.bytes.len() + bytes <= GATHERED_BYTES {
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

    /// From now on, short frames that are begun wait for each other, to go with one call of the
    /// operating system, until [`Link::go`]. Those that have a time to go at do not.
    pub fn gather(&mut self) {
        self.rest.gathers = self.shape.is_none() && self.pacer.is_none();
    }

    /// What has been gathered goes, as far as the connection takes it.
    ///
    /// # Errors
    ///
    /// The connection has failed.
    pub fn go(&mut self) -> Result<(), LinkError> {
        self.rest.gathers = false;
        match self.poll_sent(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(sent) => sent,
            Poll::Pending => Ok(()),
        }
    }

    /// The same of a frame that is no flit. It may go while another one is under way, between
    /// two of its bytes it does not.
    pub fn begin_control(&mut self, frame: &EdgeFrame) -> Result<(), LinkError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        frame.put(&mut scratch);
        let stamp = self.shape.as_mut().map(|shape| {
            // A few bytes wait for no port.
            shape.slip_in(scratch.len() + SEAL_BYTES)
        });
        let mut cx = Context::from_waker(Waker::noop());
        // A few bytes wait for no pacer.
        let begun = self.put(&mut cx, stamp, false, [&scratch[LENGTH_BYTES..], &[]]);
        self.scratch = scratch;
        begun.map(|_| ()).map_err(|e| self.failed(e))
    }

    /// Waits until what was begun is sent.
    pub fn poll_sent(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        match self.rest.waits.is_none() && self.rest.bytes.is_empty() && self.rest.is_flushed {
            true => Poll::Ready(Ok(())),
            false => self.poll_rest(cx).map_err(|e| self.failed(e)),
        }
    }

    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some([prefix, payload]) = self.rest.waits.take() {
            let bytes = HEAD_BYTES + prefix.len() + payload.len();
            let Poll::Ready(departs) = self.poll_depart(cx, bytes)? else {
                self.rest.waits = Some([prefix, payload]);
                return Poll::Pending;
            };
            let (stamp, head) = self.sealed(departs, &prefix, &payload);
            for part in [&stamp, head.as_slice(), &prefix, &payload] {
                self.rest.bytes.extend_from_slice(part);
            }
        }
        let Rest { bytes, gone, .. } = &mut self.rest;
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

    /// What goes ahead of a message in two pieces: its seal; on a shaped link, its stamp ahead
    /// of that.
    fn sealed(
        &mut self,
        departs: Option<Time>,
        prefix: &[u8],
        payload: &[u8],
    ) -> (Vec<u8>, SealHead) {
        let mut stamp = Vec::new();
        if let Some(at) = departs {
            EdgeFrame::Departed { at }.put(&mut stamp);
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
        departs: Option<Time>,
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
        // Where it was encrypted, the end of it may still be here.
        stream.flush().await
    }
}

#[cfg(test)]
mod tests;
