//! A foreign coordinator: it listens for PEs that require no certificate, accepts all, and sends
//! arbitrary messages.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use flitcast_proto::wire::Secret;
use flitcast_proto::wire::control::{FromPe, Timeouts, ToPe, Welcome};

use crate::edge::{framed, read_body};
use crate::wire_examples::written;

/// Time limit: many times the longest answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The coordinator's end of the channel of one PE.
pub struct Stranger(TcpStream);

impl Stranger {
    /// Waits for a PE to connect, and lets it join and register.
    #[track_caller]
    pub fn welcome(listener: &TcpListener) -> Stranger {
        let (channel, _) = listener.accept().expect("a PE calls");
        let set = channel.set_read_timeout(Some(PATIENCE));
        set.expect("it can be set");
        let mut stranger = Stranger(channel);
        let joins = stranger.receive();
        assert!(matches!(joins, FromPe::Join(_)), "{joins:?}");
        let second = Duration::from_secs(1);
        stranger.send(&ToPe::Welcome(Welcome {
            cluster: 1,
            secret: Secret::new([1; Secret::BYTES]),
            listen: "127.0.0.1".to_owned(),
            timeouts: Timeouts {
                heartbeat: second,
                silence: 30 * second,
                connect: second,
                handshake: second,
                write: second,
                disk: second,
            },
        }));
        let registers = stranger.receive();
        assert!(matches!(registers, FromPe::Register(_)), "{registers:?}");
        stranger
    }

    #[track_caller]
    pub fn send(&mut self, command: &ToPe) {
        let sent = self.0.write_all(&written(|out| command.put(out)));
        sent.expect("the PE hears");
    }

    /// Sends the body of a frame, whatever it is.
    #[track_caller]
    pub fn send_body(&mut self, body: &[u8]) {
        let sent = self.0.write_all(&framed(body));
        sent.expect("the PE reads it");
    }

    #[track_caller]
    pub fn receive(&mut self) -> FromPe {
        let body = read_body(&mut self.0).expect("the PE says something");
        FromPe::parse(&body).expect("a PE speaks the protocol")
    }
}
