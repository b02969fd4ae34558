//! The handshake of TLS 1.3 on a socket. The TLS library makes it; its keys are for [`RecordKey`]s.

use std::io;

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::pki_types::CertificateDer;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncodeTlsData, UnbufferedStatus};
use rustls::{CommonState, ConnectionTrafficSecrets, Error, ExtractedSecrets};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::records::RecordKey;
use crate::limits::UNKNOWN_BYTES;

/// The result of a handshake.
pub struct Agreed {
    /// The keys for the first records, to send and to receive.
    pub keys: [RecordKey; 2],
    pub later: Box<dyn LaterKeys>,
    /// The certificates of the other end, its own one first.
    pub certificates: Vec<CertificateDer<'static>>,
    /// Received bytes of the connection's user.
    pub plain: Vec<u8>,
    /// Received bytes that are not decrypted.
    pub encrypted: Vec<u8>,
}

/// The source of later keys of a connection.
pub trait LaterKeys: Send + Sync {
    fn next_to_send(&mut self) -> Result<RecordKey, Error>;
    fn next_to_receive(&mut self) -> Result<RecordKey, Error>;

    /// Returns the number of records after which a key must not be used any more.
    fn most_records(&self) -> u64;
}

impl<Data: Send + Sync> LaterKeys for KernelConnection<Data> {
    fn next_to_send(&mut self) -> Result<RecordKey, Error> {
        RecordKey::new(self.update_tx_secret()?)
    }

    fn next_to_receive(&mut self) -> Result<RecordKey, Error> {
        RecordKey::new(self.update_rx_secret()?)
    }

    fn most_records(&self) -> u64 {
        let suite = self.negotiated_cipher_suite().tls13();
        suite.map_or(0, |suite| suite.common.confidentiality_limit)
    }
}

/// One end of a handshake.
pub trait End: std::ops::Deref<Target: std::ops::Deref<Target = CommonState>> {
    /// The state of this end in the TLS library.
    type Data;

    /// Continues with received bytes.
    fn process<'c, 'i>(
        &'c mut self,
        received: &'i mut [u8],
    ) -> UnbufferedStatus<'c, 'i, Self::Data>;

    fn into_keys(self) -> Result<(ExtractedSecrets, Box<dyn LaterKeys>), Error>;
}

/// Implements [`End`], which the library's ends have no trait for.
macro_rules! end {
    ($end:ty, $data:ty) => {
        impl End for $end {
            type Data = $data;

            fn process<'c, 'i>(
                &'c mut self,
                received: &'i mut [u8],
            ) -> UnbufferedStatus<'c, 'i, $data> {
                self.process_tls_records(received)
            }

            fn into_keys(self) -> Result<(ExtractedSecrets, Box<dyn LaterKeys>), Error> {
                let (secrets, later) = self.dangerous_into_kernel_connection()?;
                Ok((secrets, Box::new(later)))
            }
        }
    };
}
end!(UnbufferedClientConnection, ClientConnectionData);
end!(UnbufferedServerConnection, ServerConnectionData);

/// The next action of a handshake.
enum Next {
    /// More is known without another byte.
    Continue,
    Send,
    Receive,
    Finish,
}

/// Makes a handshake; `answered` is called whenever this end has sent something. The other end may send
/// at most [`UNKNOWN_BYTES`] until it has authenticated itself.
///
/// # Errors
///
/// Returns an error if one end rejects the other, or if the connection fails.
pub async fn handshake(
    mut end: impl End,
    stream: &mut TcpStream,
    mut answered: impl FnMut(),
) -> io::Result<Agreed> {
    let (mut encrypted, mut plain, mut outgoing) = (Vec::new(), Vec::new(), Vec::new());
    let mut allowed = UNKNOWN_BYTES;
    loop {
        let UnbufferedStatus { mut discard, state } = end.process(&mut encrypted);
        let next = match state {
            Ok(ConnectionState::EncodeTlsData(mut message)) => {
                encode(&mut message, &mut outgoing);
                Next::Continue
            }
            Ok(ConnectionState::TransmitTlsData(outgoing)) => {
                outgoing.done();
                Next::Send
            }
            Ok(ConnectionState::BlockedHandshake) => Next::Receive,
            // What follows the last message of the handshake may have come with it.
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    let record = record.map_err(failed)?;
                    plain.extend_from_slice(record.payload);
                    discard += record.discard;
                }
                Next::Continue
            }
            Ok(ConnectionState::WriteTraffic(_)) => Next::Finish,
            Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) => {
                encrypted.drain(..discard);
                if !matches!(error, Error::AlertReceived(_)) {
                    send_alert(&mut end, &mut encrypted, stream);
                }
                return Err(failed(error));
            }
        };
        encrypted.drain(..discard);
        match next {
            Next::Continue => {}
            Next::Send => {
                stream.write_all(&outgoing).await?;
                outgoing.clear();
                answered();
            }
            Next::Receive => {
                if allowed == 0 {
                    let why =
                        format!("it sent {UNKNOWN_BYTES} bytes and has yet to show who it is");
                    return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                }
                let read = (&mut *stream)
                    .take(allowed as u64)
                    .read_buf(&mut encrypted)
                    .await?;
                allowed -= read;
                if read == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Next::Finish => break,
        }
    }
    let shown = end.peer_certificates().unwrap_or_default().iter();
    let certificates = shown.map(|it| it.clone().into_owned()).collect();
    let (secrets, later) = end.into_keys().map_err(failed)?;
    let key = |secrets: (u64, ConnectionTrafficSecrets)| RecordKey::new(secrets).map_err(failed);
    Ok(Agreed {
        keys: [key(secrets.tx)?, key(secrets.rx)?],
        later,
        certificates,
        plain,
        encrypted,
    })
}

/// Appends a message to `outgoing`.
fn encode<D>(message: &mut EncodeTlsData<'_, D>, outgoing: &mut Vec<u8>) {
    let before = outgoing.len();
    let needed = match message.encode(&mut []) {
        Err(EncodeError::InsufficientSize(error)) => error.required_size,
        _ => return,
    };
    outgoing.resize(before + needed, 0);
    let encoded = message.encode(&mut outgoing[before..]);
    encoded.expect("there is room");
}

/// Sends the alert of a failed handshake, as far as the connection accepts it at once.
fn send_alert(end: &mut impl End, received: &mut [u8], stream: &TcpStream) {
    // The alert is the one message that is left; another call would fail once more.
    if let Ok(ConnectionState::EncodeTlsData(mut message)) = end.process(received).state {
        let mut alert = Vec::new();
        encode(&mut message, &mut alert);
        // An error of the connection is not the reason.
        let _ = stream.try_write(&alert);
    }
}

/// Returns an error of TLS as one of a connection.
pub fn failed(error: Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
