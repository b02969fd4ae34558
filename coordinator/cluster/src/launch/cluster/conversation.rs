//! The connection between the coordinator and one PE. First the process authenticates itself: it sends its
//! registration and proves it. A process that was not started for this launch first sends a request to join
//! and, if its certificate is valid, receives what the others received at their start. Until then it is
//! treated as unauthenticated, and only the memory for these few messages is reserved for it.
//!
//! Then messages go in both directions, with a ping every heartbeat. If a PE answers no ping for the silence
//! limit, the connection fails.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use flitcast_node::channel::{ChannelError, ControlReader, ControlWriter};
use flitcast_node::handshake_limiter::PendingConnection;
use flitcast_node::limits::{ROUND_TRIP, Timeouts};
use flitcast_node::security::{Name, Security, Transport};
use flitcast_node::timeout_stream::{IdleLimits, TimeoutStream};
use flitcast_proto::PeId;
use flitcast_proto::wire::control::{End, FromPe, Join, Register, ToPe, Welcome};
use flitcast_proto::wire::{LENGTH_BYTES, MAX_GREETING, Secret, frame_length};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::member::PeEvent;
use crate::text::phrases::names;
use crate::text::printable::{in_one_line, indented};

pub type ChannelReader = ControlReader<FromPe, ReadHalf<TimeoutStream<Transport>>>;
pub type ChannelWriter = ControlWriter<ToPe, WriteHalf<TimeoutStream<Transport>>>;

/// Splits a stream into the reader and the writer of a channel.
pub fn open(stream: TimeoutStream<Transport>) -> (ChannelReader, ChannelWriter) {
    let (read, write) = tokio::io::split(stream);
    let reader = ControlReader::new(read, FromPe::parse);
    (reader, ControlWriter::new(write, ToPe::put))
}

/// Sends queued messages and passes on received ones, until the channel ends.
pub async fn converse(
    pe: PeId,
    reader: ChannelReader,
    writer: ChannelWriter,
    queue: mpsc::Receiver<ToPe>,
    event_sender: mpsc::Sender<(PeId, PeEvent)>,
    heartbeat: Duration,
    look: Arc<AtomicBool>,
) {
    let mut reading = std::pin::pin!(read(pe, reader, &event_sender));
    let end = tokio::select! {
        end = &mut reading => end,
        written = write(writer, queue, heartbeat, &look) => match written {
            Err(error) => Some(error),
            // The queue is closed; the PE may still send messages.
            Ok(()) => reading.await,
        },
    };
    let _ = event_sender.send((pe, PeEvent::ChannelEnded(end))).await;
}

/// Escapes the texts of a PE for people, which are repeated in errors and logs: no text of a peer
/// can begin a line there.
fn without_lines(mut reply: FromPe) -> FromPe {
    match &mut reply {
        FromPe::Fault { reason, .. } => *reason = indented(&*reason),
        FromPe::Ran(ran) => {
            if let End::Failed(why) = &mut ran.end {
                *why = indented(&*why);
            }
            for line in ran.last_lines.iter_mut().chain(&mut ran.not_taken) {
                *line = in_one_line(&*line);
            }
        }
        FromPe::ShardsListed { fault, .. } => *fault = indented(&*fault),
        FromPe::ResultsPlaced { faults } => {
            for fault in faults {
                *fault = in_one_line(&*fault);
            }
        }
        FromPe::Cleared { left } => *left = in_one_line(&*left),
        _ => {}
    }
    reply
}

async fn read(
    pe: PeId,
    mut reader: ChannelReader,
    event_sender: &mpsc::Sender<(PeId, PeEvent)>,
) -> Option<ChannelError> {
    loop {
        match reader.next().await? {
            Ok(reply) => {
                let event = PeEvent::Reply(without_lines(reply));
                event_sender.send((pe, event)).await.ok()?;
            }
            Err(error) => return Some(error),
        }
    }
}

async fn write(
    mut writer: ChannelWriter,
    mut queue: mpsc::Receiver<ToPe>,
    heartbeat: Duration,
    look: &AtomicBool,
) -> Result<(), ChannelError> {
    let mut beat = interval(heartbeat);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let command = tokio::select! {
            biased;
            command = queue.recv() => match command {
                Some(command) => command,
                None => return Ok(()),
            },
            _ = beat.tick() => ToPe::Ping { look: look.load(Relaxed) },
        };
        writer.send(command).await?;
    }
}

/// First byte of a TLS handshake; a frame, which begins with its length, never starts with it.
const TLS_HANDSHAKE: u8 = 0x16;

/// The server side of registration.
#[derive(Clone, Debug)]
pub struct HandshakeServer {
    pub cluster: u64,
    pub secret: Secret,
    pub security: Security,
    pub timeouts: Timeouts,
    /// PEs that may join, and where each listens; `None` if the coordinator starts all PEs.
    pub joining: Option<Arc<BTreeMap<PeId, IpAddr>>>,
}

/// An authenticated process of this launch.
pub struct HandshakeResult {
    pub register: Register,
    pub address: SocketAddr,
    /// The fault of its certificate, if that is for another PE.
    pub disguise: Option<String>,
    pub stays: bool,
    pub commands: bool,
    pub reader: ChannelReader,
    pub writer: ChannelWriter,
}

impl HandshakeServer {
    /// Waits until a new connection has registered.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection fails or its process does not belong to this launch.
    pub async fn greet(self, caller: PendingConnection) -> Result<HandshakeResult, String> {
        let PendingConnection { stream, lease } = caller;
        let address = stream.peer_addr().map_err(|e| e.to_string())?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let stream = match (&self.joining, &self.security) {
            (Some(_), Security::Plain) => refuse_tls(stream).await?,
            _ => stream,
        };
        let stream = self.security.answer(stream, &lease).await;
        let mut stream = stream.map_err(|e| e.to_string())?;
        let mut reply = next(&mut stream).await?;
        let mut join = None;
        if let FromPe::Join(request) = reply {
            let answer = match self.welcome(request, &stream) {
                Ok(welcome) => ToPe::Welcome(welcome),
                Err(reason) => {
                    let refusal = reason.clone();
                    let _ = send_command(&mut stream, &ToPe::Refusal { reason: refusal }).await;
                    return Err(format!("{} may not join: {reason}", request.pe));
                }
            };
            let sent = send_command(&mut stream, &answer).await;
            sent.map_err(|e| e.to_string())?;
            if matches!(self.security, Security::Plain) {
                lease.renew(ROUND_TRIP);
            }
            join = Some(request);
            reply = next(&mut stream).await?;
        }
        let FromPe::Register(register) = reply else {
            return Err("it did not register".to_owned());
        };
        if register.cluster != self.cluster {
            return Err("it is of another cluster".to_owned());
        }
        if register.secret != self.secret {
            return Err("it does not know the secret of this launch".to_owned());
        }
        if join.is_some_and(|join| join.pe != register.pe) {
            return Err("it joined as one PE, and registers as another".to_owned());
        }
        let timeouts = &self.timeouts;
        let patience = IdleLimits {
            first: timeouts.handshake,
            silence: timeouts.silence,
            write: timeouts.write,
        };
        let disguise = stream.is_of(Name::Pe(register.pe)).err();
        let (reader, writer) = open(TimeoutStream::new(stream, patience));
        Ok(HandshakeResult {
            disguise,
            stays: join.is_some_and(|join| join.stays),
            commands: join.is_none_or(|join| join.commands),
            register,
            address,
            reader,
            writer,
        })
    }

    /// Returns the answer to a request to join, or the reason why the process may not join.
    fn welcome(&self, join: Join, stream: &Transport) -> Result<Welcome, String> {
        let Some(joining) = &self.joining else {
            let why = "this command starts its processes itself: its cluster file has no [launch] kind = \"join\"";
            return Err(why.to_owned());
        };
        // Checked before the answer is sent, because only the certificate's owner may receive the
        // secret.
        stream.is_of(Name::Pe(join.pe))?;
        let Some(listen) = joining.get(&join.pe) else {
            let expected: Vec<_> = joining.keys().copied().collect();
            let expected = names(&expected);
            return Err(format!("this command waits for {expected} only"));
        };
        Ok(Welcome {
            cluster: self.cluster,
            secret: self.secret,
            listen: listen.to_string(),
            timeouts: self.timeouts,
        })
    }
}

/// Reads the next message of an unauthenticated process.
async fn next(stream: &mut Transport) -> Result<FromPe, String> {
    let mut prefix = [0; LENGTH_BYTES];
    let read = stream.read_exact(&mut prefix).await;
    read.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "it sent nothing".to_owned(),
        _ => error.to_string(),
    })?;
    let length = frame_length(prefix, MAX_GREETING).map_err(|e| e.to_string())?;
    let mut body = vec![0; length];
    let read = stream.read_exact(&mut body).await;
    read.map_err(|e| e.to_string())?;
    FromPe::parse(&body).map_err(|e| e.to_string())
}

async fn send_command(stream: &mut Transport, command: &ToPe) -> io::Result<()> {
    let mut frame = Vec::new();
    command.put(&mut frame);
    stream.write_all(&frame).await?;
    stream.flush().await
}

/// Rejects a TLS connection where connections are unencrypted, because the options of the two
/// processes differ.
async fn refuse_tls(mut stream: TcpStream) -> Result<TcpStream, String> {
    let mut first = [0];
    let peeked = stream.peek(&mut first).await.map_err(|e| e.to_string())?;
    if peeked == 0 || first != [TLS_HANDSHAKE] {
        return Ok(stream);
    }
    let why = "it shows a certificate, and this command was told --insecure: give both --credentials DIR, or both --insecure";
    // The received bytes are read so that closing does not cut off the answer. The answer is not
    // TLS; the other end reports it.
    let _ = stream.read(&mut vec![0; MAX_GREETING]).await;
    let mut frame = Vec::new();
    let reason = why.to_owned();
    ToPe::Refusal { reason }.put(&mut frame);
    let _ = stream.write_all(&frame).await;
    Err(why.to_owned())
}
