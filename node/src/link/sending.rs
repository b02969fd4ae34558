//! The sending half of a link: frames that are begun, continued, coalesced and paced.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use flitcast_proto::ops::COALESCE_LIMIT_BYTES;
use flitcast_proto::wire::LENGTH_BYTES;
use flitcast_proto::wire::control::Doing;
use flitcast_proto::wire::edge::EdgeFrame;
use flitcast_proto::wire::flit::is_flit;
use flitcast_proto::wire::seal::{HEAD_BYTES, SEAL_BYTES, SealHead};
use tokio::io::{AsyncWrite as _, AsyncWriteExt as _};

use super::{Link, LinkError, PendingWrite, Stamp};

impl Link {
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
