//! What TLS reads from: a socket, and what was read ahead of it. Nothing is reserved for who
//! has yet to show a certificate, and little is taken from it.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::limits::UNKNOWN_BYTES;

/// rustls asks a socket for 4 KiB at a time; a flit of 64 KiB would take 16 reads.
const READ_AHEAD: usize = 64 * 1024;

/// A socket that is read ahead of who reads.
#[derive(Debug)]
pub struct ReadAhead {
    stream: TcpStream,
    /// Empty until the other end is known.
    buffer: Box<[u8]>,
    held: Range<usize>,
    /// How much the other end may send before it is known.
    allowed: usize,
}

impl ReadAhead {
    /// Of somebody whom this process has called, or of anybody, who may send little until it
    /// [`is_known`](ReadAhead::is_known).
    pub fn new(stream: TcpStream) -> ReadAhead {
        ReadAhead {
            stream,
            buffer: Box::default(),
            held: 0..0,
            allowed: UNKNOWN_BYTES,
        }
    }

    /// Its certificate was found good: from now on it may send as much as it likes.
    pub fn is_known(&mut self) {
        self.buffer = vec![0; READ_AHEAD].into();
    }

    /// The socket.
    pub fn socket(&self) -> &TcpStream {
        &self.stream
    }

    /// Bytes that were read ahead.
    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// From somebody unknown, nothing is read ahead.
    fn poll_unknown(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let most = self.allowed.min(buf.remaining());
        if most == 0 && buf.remaining() > 0 {
            let why = format!("it sent {UNKNOWN_BYTES} bytes and has yet to show who it is");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, why)));
        }
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(most));
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut part))?;
        let read = part.filled().len();
        self.allowed -= read;
        buf.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for ReadAhead {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.buffer.is_empty() {
            return this.poll_unknown(cx, buf);
        }
        if this.held.is_empty() {
            let mut space = ReadBuf::new(&mut this.buffer);
            ready!(Pin::new(&mut this.stream).poll_read(cx, &mut space))?;
            this.held = 0..space.filled().len();
        }
        let bytes = this.held.len().min(buf.remaining());
        buf.put_slice(&this.buffer[this.held.start..this.held.start + bytes]);
        this.held.start += bytes;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ReadAhead {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
