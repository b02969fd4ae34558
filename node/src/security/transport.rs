//! A guarded connection, or a plain one, as its users see it: bytes in, bytes out.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use super::Name;
use super::believed::Believed;
use super::explain::{explained, told_of};
use super::read_ahead::ReadAhead;
use crate::system::sockets;

/// A connection.
#[derive(Debug)]
pub struct Transport(Kind);

#[derive(Debug)]
enum Kind {
    Plain(TcpStream),
    /// Boxed: it is large, and links are moved about. With it, whose certificates are believed.
    Tls(Box<TlsStream<ReadAhead>>, Arc<Believed>),
}

impl Transport {
    /// A connection that is not guarded.
    pub fn plain(stream: TcpStream) -> Transport {
        Transport(Kind::Plain(stream))
    }

    /// One whose ends have shown each other who they are.
    pub(super) fn tls(mut stream: TlsStream<ReadAhead>, believed: Arc<Believed>) -> Transport {
        stream.get_mut().0.is_known();
        Transport(Kind::Tls(Box::new(stream), believed))
    }

    /// The connection below.
    pub fn socket(&self) -> &TcpStream {
        match &self.0 {
            Kind::Plain(stream) => stream,
            Kind::Tls(stream, _) => stream.get_ref().0.socket(),
        }
    }

    /// The other end's address.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.socket().peer_addr()
    }

    /// Bytes that have come and were not asked for yet: on a guarded connection, as they
    /// are on the wire, and but for those of a record that was opened.
    pub fn waiting_bytes(&self) -> u64 {
        let read_ahead = match &self.0 {
            Kind::Plain(_) => 0,
            Kind::Tls(stream, _) => stream.get_ref().0.held_bytes() as u64,
        };
        read_ahead + sockets::unread_bytes(self.socket()).unwrap_or(0)
    }

    /// What the other end has shown of itself.
    pub fn shown(&self) -> Shown {
        Shown(match &self.0 {
            Kind::Plain(_) => None,
            Kind::Tls(stream, believed) => {
                let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
                let chain = chain.iter().map(|it| it.clone().into_owned());
                Some((chain.collect(), believed.clone()))
            }
        })
    }
}

/// What the other end of a connection has shown of itself: nothing where it is plain.
#[derive(Debug)]
pub struct Shown(Option<(Vec<CertificateDer<'static>>, Arc<Believed>)>);

impl Shown {
    /// Checks that it is `name`'s, as its owner says, and was not revoked. On a plain
    /// connection, the secret that it has told must do.
    ///
    /// # Errors
    ///
    /// Whose it is, or that it was revoked.
    pub fn is_of(&self, name: Name) -> Result<(), String> {
        match &self.0 {
            None => Ok(()),
            Some((chain, believed)) => {
                let checked = believed.check(chain, name);
                checked.map_err(|error| told_of(&error, name))
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
            Kind::Tls(stream, _) => match ready!(Pin::new(stream).poll_read(cx, buf)) {
                // A process that dies takes no leave. That frames are whole, and that a
                // round is, is told by their lengths and by receipts.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                read => Poll::Ready(read.map_err(explained)),
            },
        }
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Kind::Tls(stream, _) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Kind::Tls(stream, _) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            Kind::Plain(stream) => stream.is_write_vectored(),
            Kind::Tls(stream, _) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Kind::Tls(stream, _) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Kind::Tls(stream, _) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
