//! A guarded connection, or a plain one, as its users see it: bytes in, bytes out.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustls::client::verify_server_name;
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use super::Name;
use super::explain::{explained, told};
use super::read_ahead::ReadAhead;

/// A connection.
#[derive(Debug)]
pub struct Transport(Kind);

#[derive(Debug)]
enum Kind {
    Plain(TcpStream),
    /// Boxed: it is large, and links are moved about.
    Tls(Box<TlsStream<ReadAhead>>),
}

impl Transport {
    /// A connection that is not guarded.
    pub fn plain(stream: TcpStream) -> Transport {
        Transport(Kind::Plain(stream))
    }

    /// One whose ends have shown each other who they are.
    pub(super) fn tls(mut stream: TlsStream<ReadAhead>) -> Transport {
        stream.get_mut().0.is_known();
        Transport(Kind::Tls(Box::new(stream)))
    }

    /// The connection below.
    pub fn socket(&self) -> &TcpStream {
        match &self.0 {
            Kind::Plain(stream) => stream,
            Kind::Tls(stream) => stream.get_ref().0.socket(),
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
            Kind::Tls(stream) => stream.get_ref().0.held_bytes() as u64,
        };
        read_ahead + rustix::io::ioctl_fionread(self.socket()).unwrap_or(0)
    }

    /// What the other end has shown of itself.
    pub fn shown(&self) -> Shown {
        Shown(match &self.0 {
            Kind::Plain(_) => None,
            Kind::Tls(stream) => {
                let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
                Some(chain.first().map(|first| first.clone().into_owned()))
            }
        })
    }
}

/// What the other end of a connection has shown of itself: nothing where it is plain.
#[derive(Debug)]
pub struct Shown(Option<Option<CertificateDer<'static>>>);

impl Shown {
    /// Checks that it is `name`'s, as its owner says. On a plain connection, the secret
    /// that it has told must do.
    ///
    /// # Errors
    ///
    /// Whose it is.
    pub fn is_of(&self, name: Name) -> Result<(), String> {
        let certificate = match &self.0 {
            None => return Ok(()),
            Some(None) => return Err("it shows no certificate".to_owned()),
            Some(Some(certificate)) => certificate,
        };
        let certificate = ParsedCertificate::try_from(certificate).map_err(|e| told(&e))?;
        verify_server_name(&certificate, &name.on_certificates()).map_err(|e| told(&e))
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
            Kind::Tls(stream) => match ready!(Pin::new(stream).poll_read(cx, buf)) {
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
            Kind::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Kind::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.0 {
            Kind::Plain(stream) => stream.is_write_vectored(),
            Kind::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Kind::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Kind::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
