//! A connection under TLS 1.3 after its handshake: bytes in, bytes out.

use std::fmt;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use rustls::pki_types::CertificateDer;
use rustls::{AlertDescription, Error, InvalidMessage, PeerMisbehaved};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::handshake::{Agreed, LaterKeys, failed};
use super::records::{ContentType, MAX_CONTENT_BYTES, MAX_RECORD_BYTES, OVERHEAD_BYTES, RecordKey};
use crate::tuning::protected::{READ_AHEAD, RECORDS_AT_ONCE};

/// The message of the handshake that announces new keys, without and with a request for the other
/// direction's (RFC 8446, section 4.6.3), and the type of a ticket for a later connection.
const KEY_UPDATE: [u8; 5] = [24, 0, 0, 1, 0];
const KEY_UPDATE_REQUESTED: [u8; 5] = [24, 0, 0, 1, 1];
const NEW_TICKET: u8 = 4;

/// The levels of alerts: an announced end, and an error.
const WARNING: u8 = 1;
const FATAL: u8 = 2;

pub struct Protected {
    stream: TcpStream,
    certificates: Vec<CertificateDer<'static>>,
    sending: RecordKey,
    receiving: RecordKey,
    later: Box<dyn LaterKeys>,
    /// Number of records after which the key to send with is replaced.
    pub(super) most_records: u64,
    /// Whether the other end has requested that.
    must_update: bool,
    /// Received bytes: content of a record that was decrypted, and after it what was not.
    incoming: Box<[u8]>,
    plain: Range<usize>,
    encrypted: Range<usize>,
    has_ended: bool,
    /// Encrypted records, and the number of their bytes that are sent.
    outgoing: Vec<u8>,
    sent: usize,
}

impl Protected {
    /// Protects a connection by what a handshake has agreed on.
    pub fn new(stream: TcpStream, agreed: Agreed) -> Protected {
        let Agreed {
            keys: [sending, receiving],
            later,
            certificates,
            plain,
            encrypted,
        } = agreed;
        let (begin, end) = (plain.len(), plain.len() + encrypted.len());
        let mut incoming = vec![0; READ_AHEAD.max(end + MAX_RECORD_BYTES)].into_boxed_slice();
        incoming[..begin].copy_from_slice(&plain);
        incoming[begin..end].copy_from_slice(&encrypted);
        Protected {
            stream,
            certificates,
            sending,
            receiving,
            most_records: later.most_records(),
            must_update: false,
            later,
            incoming,
            plain: 0..begin,
            encrypted: begin..end,
            has_ended: false,
            outgoing: Vec::new(),
            sent: 0,
        }
    }

    pub fn socket(&self) -> &TcpStream {
        &self.stream
    }

    /// Returns the certificates of the other end, its own one first.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// Returns the number of received bytes that are not decrypted.
    pub fn encrypted_bytes(&self) -> usize {
        self.encrypted.len()
    }

    /// Decrypts the next received record; returns whether there was a whole one.
    fn open_next(&mut self) -> Result<bool, Error> {
        let at = self.encrypted.start;
        let Some(opened) = self
            .receiving
            .open(&mut self.incoming[self.encrypted.clone()])?
        else {
            return Ok(false);
        };
        self.encrypted.start += opened.bytes;
        let content = at + opened.content.start..at + opened.content.end;
        match opened.kind {
            ContentType::Data => self.plain = content,
            ContentType::Alert => match self.incoming[content] {
                [_, description] if description == AlertDescription::CloseNotify.into() => {
                    self.has_ended = true;
                }
                [_, description] => return Err(Error::AlertReceived(description.into())),
                _ => return Err(InvalidMessage::MessageTooShort.into()),
            },
            ContentType::Handshake => self.received_handshake(content)?,
        }
        Ok(true)
    }

    /// Handles messages of the handshake after its end. Neither end of a Flitcast connection sends any
    /// but updates of keys.
    fn received_handshake(&mut self, content: Range<usize>) -> Result<(), Error> {
        let message = &self.incoming[content];
        let is_requested = message == KEY_UPDATE_REQUESTED;
        if is_requested || message == KEY_UPDATE {
            self.receiving = self.later.next_to_receive()?;
            self.must_update |= is_requested;
            return Ok(());
        }
        match message.first() {
            Some(&NEW_TICKET) => Ok(()),
            // By the standard, new keys begin with a record.
            Some(_) => Err(PeerMisbehaved::KeyEpochWithPendingFragment.into()),
            None => Err(InvalidMessage::MessageTooShort.into()),
        }
    }

    /// Announces new keys, and sends with them from now on.
    fn update_sending(&mut self) -> Result<(), Error> {
        let append = |out: &mut Vec<u8>| out.extend(KEY_UPDATE);
        self.sending
            .seal(ContentType::Handshake, &mut self.outgoing, append);
        self.sending = self.later.next_to_send()?;
        self.must_update = false;
        Ok(())
    }

    /// Encrypts an alert, and sends as much as the connection accepts at once.
    fn alert(&mut self, level: u8, description: AlertDescription) {
        let append = |out: &mut Vec<u8>| out.extend([level, description.into()]);
        self.sending
            .seal(ContentType::Alert, &mut self.outgoing, append);
        if let Ok(sent) = self.stream.try_write(&self.outgoing[self.sent..]) {
            self.sent += sent;
        }
    }

    /// Reports an error in received bytes to the other end, and returns it.
    fn refused(&mut self, error: Error) -> io::Error {
        let description = match &error {
            Error::DecryptError => Some(AlertDescription::BadRecordMac),
            Error::AlertReceived(_) => None,
            _ => Some(AlertDescription::UnexpectedMessage),
        };
        if let Some(description) = description {
            self.alert(FATAL, description);
        }
        failed(error)
    }

    /// Reads from the socket behind what is not decrypted yet, which has to be less than a record.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.encrypted.is_empty() {
            self.encrypted = 0..0;
        } else if self.incoming.len() - self.encrypted.start < MAX_RECORD_BYTES {
            self.incoming.copy_within(self.encrypted.clone(), 0);
            self.encrypted = 0..self.encrypted.len();
        }
        let mut space = ReadBuf::new(&mut self.incoming[self.encrypted.end..]);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut space))?;
        let read = space.filled().len();
        self.encrypted.end += read;
        Poll::Ready(Ok(read))
    }

    /// Sends what is encrypted.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.outgoing.len() {
            let left = &self.outgoing[self.sent..];
            let sent = ready!(Pin::new(&mut self.stream).poll_write(cx, left))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.sent += sent;
        }
        self.outgoing.clear();
        self.sent = 0;
        Poll::Ready(Ok(()))
    }

    /// Encrypts the first bytes of `parts` and returns their number.
    fn encrypt(&mut self, parts: &[IoSlice<'_>]) -> Result<usize, Error> {
        let all: usize = parts.iter().map(|part| part.len()).sum();
        let bytes = all.min(RECORDS_AT_ONCE * MAX_CONTENT_BYTES);
        let records = bytes.div_ceil(MAX_CONTENT_BYTES);
        self.outgoing.reserve(bytes + records * OVERHEAD_BYTES);
        let (mut parts, mut part) = (parts.iter(), &[][..]);
        let mut left = bytes;
        while left > 0 {
            if self.must_update || self.sending.records() + 1 >= self.most_records {
                self.update_sending()?;
            }
            let mut wanted = left.min(MAX_CONTENT_BYTES);
            left -= wanted;
            self.sending
                .seal(ContentType::Data, &mut self.outgoing, |out| {
                    while wanted > 0 {
                        if part.is_empty() {
                            part = parts.next().expect("all of them are as long");
                        }
                        let (now, later) = part.split_at(wanted.min(part.len()));
                        out.extend_from_slice(now);
                        wanted -= now.len();
                        part = later;
                    }
                });
        }
        Ok(bytes)
    }
}

impl AsyncRead for Protected {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        loop {
            let bytes = this.plain.len().min(buf.remaining());
            buf.put_slice(&this.incoming[this.plain.start..this.plain.start + bytes]);
            this.plain.start += bytes;
            if buf.remaining() == 0 || this.has_ended {
                return Poll::Ready(Ok(()));
            }
            match this.open_next() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => return Poll::Ready(Err(this.refused(error))),
            }
            if buf.filled().len() > before {
                return Poll::Ready(Ok(()));
            }
            // A process that dies does not end TLS properly. Lengths and receipts show that frames and a
            // round are complete.
            this.has_ended = ready!(this.poll_fill(cx))? == 0;
        }
    }
}

impl AsyncWrite for Protected {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    /// Encrypts bytes after all before them are sent; some may not be sent until the connection is
    /// flushed.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_send(cx))?;
        let bytes = this.encrypt(bufs).map_err(failed)?;
        match this.poll_send(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(bytes)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_send(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_send(cx))?;
        this.alert(WARNING, AlertDescription::CloseNotify);
        Pin::new(&mut this.stream).poll_shutdown(cx)
    }
}

impl fmt::Debug for Protected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Protected");
        shown.field("stream", &self.stream).finish_non_exhaustive()
    }
}
