//! A protected or plain connection, as its users see it: bytes in, bytes out.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::Name;
use super::explain::{describe, explained};
use super::peer_verifier::PeerVerifier;
use super::protected::Protected;
use crate::system::sockets;

#[derive(Debug)]
pub struct Transport(Kind);

#[derive(Debug)]
enum Kind {
    Plain(TcpStream),
    /// Boxed, because it is large and links are moved; with the verifier of certificates.
    Tls(Box<Protected>, Arc<PeerVerifier>),
}

impl Transport {
    pub fn plain(stream: TcpStream) -> Transport {
        Transport(Kind::Plain(stream))
    }

    /// Creates a connection whose ends have authenticated each other.
    pub(super) fn tls(stream: Protected, verifier: Arc<PeerVerifier>) -> Transport {
        Transport(Kind::Tls(Box::new(stream), verifier))
    }

    pub fn socket(&self) -> &TcpStream {
        match &self.0 {
            Kind::Plain(stream) => stream,
            Kind::Tls(stream, _) => stream.socket(),
        }
    }

    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.socket().peer_addr()
    }

    /// Returns the number of bytes that have arrived and were not read: on a protected connection in
    /// encrypted form, without those of a decrypted record.
    pub fn waiting_bytes(&self) -> u64 {
        let read_ahead = match &self.0 {
            Kind::Plain(_) => 0,
            Kind::Tls(stream, _) => stream.encrypted_bytes() as u64,
        };
        read_ahead + sockets::unread_bytes(self.socket()).unwrap_or(0)
    }

    /// Replaces the key to send with after this many records.
    #[cfg(test)]
    pub(super) fn set_most_records(&mut self, records: u64) {
        if let Kind::Tls(stream, _) = &mut self.0 {
            stream.most_records = records;
        }
    }

    /// Checks that the certificate of the other end has the name `name` and was not revoked. On a plain
    /// connection, the secret of the launch has to suffice.
    pub fn is_of(&self, name: Name) -> Result<(), String> {
        match &self.0 {
            Kind::Plain(_) => Ok(()),
            Kind::Tls(stream, verifier) => {
                let checked = verifier.check(stream.certificates(), name);
                checked.map_err(|error| describe(&error, Some(name)))
            }
        }
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Kind::Tls(stream, _) => {
                let read = Pin::new(stream).poll_read(cx, buf);
                read.map_err(|error| explained(error, None))
            }
        }
    }
}

impl Transport {
    fn writer(self: Pin<&mut Self>) -> Pin<&mut (dyn AsyncWrite + Unpin)> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream),
            Kind::Tls(stream, _) => Pin::new(stream),
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.writer().poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.writer().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            Kind::Plain(stream) => stream.is_write_vectored(),
            Kind::Tls(stream, _) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer().poll_shutdown(cx)
    }
}
