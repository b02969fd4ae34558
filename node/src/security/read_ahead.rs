//! The input of TLS: a socket, and a buffer of bytes read ahead. There is no buffer for a client
//! without a verified certificate, and little is read from it.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::limits::UNKNOWN_BYTES;
use crate::tuning::read_ahead::READ_AHEAD;

/// A socket with a read-ahead buffer.
#[derive(Debug)]
pub struct ReadAhead {
    stream: TcpStream,
    /// Empty until the other end is authenticated.
    buffer: Box<[u8]>,
    held: Range<usize>,
    /// Number of bytes that the other end may send before it is authenticated.
    allowed: usize,
}

impl ReadAhead {
    /// Creates it for a server that this process has called, or for a client, which may send little
    /// until [`is_known`](ReadAhead::is_known).
    pub fn new(stream: TcpStream) -> ReadAhead {
        ReadAhead {
            stream,
            buffer: Box::default(),
            held: 0..0,
            allowed: UNKNOWN_BYTES,
        }
    }

    /// Removes the limit, because the other end's certificate is valid.
    pub fn is_known(&mut self) {
        self.buffer = vec![0; READ_AHEAD].into();
    }

    pub fn socket(&self) -> &TcpStream {
        &self.stream
    }

    pub fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// Reads from an unauthenticated client, without reading ahead.
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
