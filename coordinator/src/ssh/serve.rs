//! `flitcast self-serve`: a host that has the program hands it out to those below it in the
//! tree. The program is no secret, and who comes checks what it gets, so this is plain TCP:
//! whoever connects gets all bytes and is not asked who it is.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::script::SERVES;

/// Who is given it at once: twice as many as are sent here (`hosts.rs`), since strangers may
/// come as well.
const AT_ONCE: usize = 8;
/// For one to have all of it; who takes it gives up by then (`script.rs`).
const GIVING: Duration = Duration::from_secs(60);
/// When nobody has come for so long, whoever had this begun is gone without a word.
const UNWANTED: Duration = Duration::from_secs(600);
/// After the system has refused to let somebody in, for others to be done.
const PAUSE: Duration = Duration::from_millis(50);

/// Hands out this program at an address of this host, at a port that standard output says,
/// until nobody has come for ten minutes.
///
/// # Errors
///
/// The program cannot be read, or this host has no such address.
pub async fn serve(listen: IpAddr) -> io::Result<()> {
    // Whatever has taken its place at its path by now.
    let content: Arc<[u8]> = std::fs::read("/proc/self/exe")?.into();
    let listener = TcpListener::bind((listen, 0)).await?;
    println!("{SERVES}{}", listener.local_addr()?.port());
    give_to_all(&listener, content).await;
    Ok(())
}

async fn give_to_all(listener: &TcpListener, content: Arc<[u8]>) {
    let mut takers = JoinSet::new();
    while let Ok(came) = timeout(UNWANTED, listener.accept()).await {
        match came {
            Ok((stream, _)) => {
                takers.spawn(timeout(GIVING, give(stream, content.clone())));
            }
            Err(_) => sleep(PAUSE).await,
        }
        while takers.try_join_next().is_some() {}
        if takers.len() >= AT_ONCE {
            takers.join_next().await;
        }
    }
}

async fn give(mut stream: TcpStream, content: Arc<[u8]>) -> io::Result<()> {
    stream.write_all(&content).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[tokio::test]
    async fn everybody_gets_all_of_it_and_who_takes_nothing_keeps_no_other_waiting() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        // More than sockets hold.
        let content: Arc<[u8]> = (0..16 << 20).map(|i| (i % 251) as u8).collect();
        let giving = give_to_all(&listener, content.clone());
        let taking = async {
            let mut idle = Vec::new();
            for _ in 1..AT_ONCE {
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
            () = giving => panic!("somebody came"),
            () = taking => {}
        }
    }
}
