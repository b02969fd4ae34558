//! `flitcast self-serve`: a host that has the program hands it out to those below it in the
//! tree. The program is no secret, and who comes checks what it gets, so this is plain TCP:
//! whoever connects gets all bytes and is not asked who it is.

//!
//! Who takes it needs to say nothing, so it keeps its place here as long as it takes what it is
//! given; when more come than there is room for, those make way who take nothing.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use flitcast_node::door::{Caller, Door, listen};
use flitcast_node::system::children::PROGRAM;
use flitcast_node::system::sockets;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::script::SERVES;

/// Who is given it at once: several times as many as are sent here (`hosts.rs`), since
/// strangers may come as well.
const AT_ONCE: usize = 64;
/// For one to have all of it; who takes it gives up by then (`script.rs`).
const GIVING: Duration = Duration::from_secs(60);
/// How much of the program is given at a time.
const PART: usize = 64 * 1024;
/// For each part, somebody keeps its place so long, whoever else comes: over an edge that has the
/// program there within [`GIVING`], a part takes half a second at most.
const TAKING: Duration = Duration::from_secs(2);
/// What is on its way to one who takes it: enough for 400 kB/s around the earth,
/// and so little that it is soon seen who takes nothing.
const ON_ITS_WAY: usize = 128 * 1024;
/// When nobody has taken it for so long, whoever had this begun is gone without a word.
const UNWANTED: Duration = Duration::from_secs(600);

/// Hands out this program at an address of this host, at a port that standard output says,
/// until nobody has taken it for ten minutes.
///
/// # Errors
///
/// The program cannot be read, or this host has no such address.
pub async fn serve(listen_at: IpAddr) -> io::Result<()> {
    let content: Arc<[u8]> = std::fs::read(PROGRAM)?.into();
    let listener = listen((listen_at, 0).into())?;
    println!("{SERVES}{}", listener.local_addr()?.port());
    give_to_all(&listener, content).await
}

async fn give_to_all(listener: &TcpListener, content: Arc<[u8]>) -> io::Result<()> {
    // Connections have it from their listener.
    sockets::set_send_buffer(listener, ON_ITS_WAY)?;
    let mut door = Door::new(listener, AT_ONCE, GIVING);
    let give = |caller| give(caller, content.clone());
    while timeout(UNWANTED, door.next(give)).await.is_ok() {}
    Ok(())
}

async fn give(mut caller: Caller, content: Arc<[u8]>) -> Result<(), String> {
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

    /// Who takes nothing is of the same host, and twice as many as there is room for.
    #[tokio::test]
    async fn everybody_gets_all_of_it_and_who_takes_nothing_keeps_no_other_waiting() {
        let listener = listen((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let address = listener.local_addr().unwrap();
        // More than sockets hold.
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
            gone = giving => panic!("it goes on: {gone:?}"),
            () = taking => {}
        }
    }
}
