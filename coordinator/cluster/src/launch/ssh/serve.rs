//! `flitcast self-serve`: a host serves its copy of the program to the hosts below it in the tree.
//! The program is not secret and the receiver verifies it, so this is plain TCP without
//! authentication: each client that connects receives all bytes.
//!
//! A client sends nothing. It keeps its place while it receives; if there are more clients than
//! places, those that receive nothing are disconnected first.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use flitcast_node::handshake_limiter::{HandshakeLimiter, PendingConnection, listen};
use flitcast_node::system::children::PROGRAM;
use flitcast_node::system::sockets;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::script::SERVES;

/// Maximum number of simultaneous clients: several times as many as `hosts.rs` sends here, because
/// other clients may connect as well.
const AT_ONCE: usize = 64;
/// Time limit of one client; a host's script gives up by then (`script.rs`).
const GIVING: Duration = Duration::from_secs(60);
const PART: usize = 64 * 1024;
/// Time for which a client keeps its place after each part. On a link that transfers the program
/// within [`GIVING`], a part takes at most half a second.
const TAKING: Duration = Duration::from_secs(2);
/// Send buffer of a connection: enough for 400 kB/s around the earth, and small enough that a
/// client that receives nothing is soon recognised.
const ON_ITS_WAY: usize = 128 * 1024;
/// Time without a client after which the server ends; its ssh is assumed to be lost.
const UNWANTED: Duration = Duration::from_secs(600);

/// Serves this program at an address of this host, at a port printed on standard output, until no
/// client has copied it for ten minutes.
///
/// # Errors
///
/// Returns an error if the program cannot be read or the host does not have the address.
pub async fn serve(listen_at: IpAddr) -> io::Result<()> {
    let content: Arc<[u8]> = std::fs::read(PROGRAM)?.into();
    let listener = listen((listen_at, 0).into())?;
    println!("{SERVES}{}", listener.local_addr()?.port());
    give_to_all(&listener, content).await
}

async fn give_to_all(listener: &TcpListener, content: Arc<[u8]>) -> io::Result<()> {
    // Connections inherit the buffer size from the listener.
    sockets::set_send_buffer(listener, ON_ITS_WAY)?;
    let mut door = HandshakeLimiter::new(listener, AT_ONCE, GIVING);
    let give = |caller| give(caller, content.clone());
    while timeout(UNWANTED, door.next(give)).await.is_ok() {}
    Ok(())
}

async fn give(mut caller: PendingConnection, content: Arc<[u8]>) -> Result<(), String> {
    let given = async {
        for part in content.chunks(PART) {
            caller.stream.write_all(part).await?;
            caller.lease.renew(TAKING);
        }
        caller.stream.shutdown().await
    };
    given.await.map_err(|error: io::Error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::AsyncReadExt as _;
    use tokio::net::TcpStream;

    use super::*;

    /// The idle clients are on the same host and twice as many as there are places.
    #[tokio::test]
    async fn idle_clients_do_not_block_other_clients() {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        // More than the socket buffers hold.
        let content: Arc<[u8]> = (0..16 << 20).map(|i| (i % 251) as u8).collect();
        let giving = give_to_all(&listener, content.clone());
        let taking = async {
            let mut idle = Vec::new();
            for _ in 0..2 * AT_ONCE {
                idle.push(TcpStream::connect(address).await.unwrap());
            }
            for _ in 0..3 {
                let mut taken = Vec::new();
                let mut stream = TcpStream::connect(address).await.unwrap();
                stream.read_to_end(&mut taken).await.unwrap();
                assert!(*taken == *content);
            }
        };
        tokio::select! {
            ended = giving => panic!("serving ended: {ended:?}"),
            () = taking => {}
        }
    }
}
