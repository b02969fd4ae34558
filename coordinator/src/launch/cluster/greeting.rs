//! Who may come in: a newcomer says who it is, and shows it. One that nobody has started for
//! this launch says first that it wants to join, and is told by its certificate's leave what
//! the others know. Until all of that is said it is anybody, for whom nothing is reserved but
//! what these few words take.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use flitcast_node::door::Caller;
use flitcast_node::limits::{ROUND_TRIP, Timeouts};
use flitcast_node::lively::{Lively, Patience};
use flitcast_node::security::{Name, Security, Shown, Transport};
use flitcast_proto::wire::control::{FromPe, Join, Register, ToPe, Welcome};
use flitcast_proto::wire::{LENGTH_BYTES, MAX_GREETING, Secret, frame_length};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::conversation::{ChannelReader, ChannelWriter, open};
use super::joining::Joining;
use crate::text::words::names;

/// The first byte of a TLS handshake; none of ours, which begins with a length.
const TLS_HANDSHAKE: u8 = 0x16;

/// Asks newcomers who they are.
#[derive(Clone, Debug)]
pub struct Greeter {
    /// Names the cluster.
    pub cluster: u64,
    /// The secret of the launch.
    pub secret: Secret,
    /// How connections are guarded.
    pub security: Security,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// Who may join; `None` where all are started by the coordinator.
    pub joining: Option<Arc<Joining>>,
}

/// A process of this launch.
pub struct Newcomer {
    /// What it says of itself.
    pub register: Register,
    /// From where.
    pub address: SocketAddr,
    /// That its certificate is for somebody else.
    pub disguise: Option<String>,
    /// Whether it joins the next cluster as well.
    pub stays: bool,
    /// Whether it runs commands.
    pub commands: bool,
    /// What comes from it.
    pub reader: ChannelReader,
    /// What goes to it.
    pub writer: ChannelWriter,
}

impl Greeter {
    /// Waits for a newcomer to say who it is.
    ///
    /// # Errors
    ///
    /// Why it is none of ours.
    pub async fn greet(self, caller: Caller) -> Result<Newcomer, String> {
        let Caller { stream, lease } = caller;
        let address = stream.peer_addr().map_err(|e| e.to_string())?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let stream = match (&self.joining, &self.security) {
            (Some(_), Security::Plain) => refuse_tls(stream).await?,
            _ => stream,
        };
        let stream = self.security.answer(stream, &lease).await;
        let mut stream = stream.map_err(|e| e.to_string())?;
        let shown = stream.shown();
        let mut word = next(&mut stream).await?;
        let mut join = None;
        if let FromPe::Join(asked) = word {
            let answer = match self.welcome(asked, &shown) {
                Ok(welcome) => ToPe::Welcome(welcome),
                Err(reason) => {
                    let refusal = reason.clone();
                    let _ = say(&mut stream, &ToPe::Refusal { reason: refusal }).await;
                    return Err(format!("{} may not join: {reason}", asked.pe));
                }
            };
            let said = say(&mut stream, &answer).await;
            said.map_err(|e| e.to_string())?;
            if matches!(self.security, Security::Plain) {
                lease.renew(ROUND_TRIP);
            }
            join = Some(asked);
            word = next(&mut stream).await?;
        }
        let FromPe::Register(register) = word else {
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
        let patience = Patience {
            first: timeouts.handshake,
            silence: timeouts.silence,
            write: timeouts.write,
        };
        let (reader, writer) = open(Lively::new(stream, patience));
        Ok(Newcomer {
            disguise: shown.is_of(Name::Pe(register.pe)).err(),
            stays: join.is_some_and(|join| join.stays),
            commands: join.is_none_or(|join| join.commands),
            register,
            address,
            reader,
            writer,
        })
    }

    /// What who joins is told, or why it may not.
    fn welcome(&self, join: Join, shown: &Shown) -> Result<Welcome, String> {
        let Some(joining) = &self.joining else {
            return Err(
                "this command starts its processes itself: its cluster file has no [launch] kind = \"join\"".to_owned(),
            );
        };
        // Before anything is told: the secret is for the owner of the certificate.
        shown.is_of(Name::Pe(join.pe))?;
        let Some(listen) = joining.listen.get(&join.pe) else {
            let expected: Vec<_> = joining.listen.keys().copied().collect();
            let expected = names(&expected);
            return Err(format!("this command waits for {expected} only"));
        };
        Ok(Welcome {
            cluster: self.cluster,
            secret: self.secret,
            listen: listen.to_string(),
            timeouts: joining.timeouts.into(),
        })
    }
}

/// What somebody says next of itself.
async fn next(stream: &mut Transport) -> Result<FromPe, String> {
    let mut prefix = [0; LENGTH_BYTES];
    let read = stream.read_exact(&mut prefix).await;
    read.map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => "it said nothing".to_owned(),
        _ => error.to_string(),
    })?;
    let length = frame_length(prefix, MAX_GREETING).map_err(|e| e.to_string())?;
    let mut body = vec![0; length];
    let read = stream.read_exact(&mut body).await;
    read.map_err(|e| e.to_string())?;
    FromPe::parse(&body).map_err(|e| e.to_string())
}

async fn say(stream: &mut Transport, word: &ToPe) -> io::Result<()> {
    let mut frame = Vec::new();
    word.put(&mut frame);
    stream.write_all(&frame).await?;
    stream.flush().await
}

/// Where connections are plain, somebody may not know.
async fn refuse_tls(mut stream: TcpStream) -> Result<TcpStream, String> {
    let mut first = [0];
    let peeked = stream.peek(&mut first).await.map_err(|e| e.to_string())?;
    if peeked == 0 || first != [TLS_HANDSHAKE] {
        return Ok(stream);
    }
    let why = "it shows a certificate, and this command was told --insecure: give both --credentials DIR, or both --insecure";
    // What was read does not cut off what is said, and what is said is no TLS: that is told
    // at the other end.
    let _ = stream.read(&mut vec![0; MAX_GREETING]).await;
    let mut frame = Vec::new();
    let reason = why.to_owned();
    ToPe::Refusal { reason }.put(&mut frame);
    let _ = stream.write_all(&frame).await;
    Err(why.to_owned())
}
