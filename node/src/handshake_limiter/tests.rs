use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpSocket;

use super::*;
use crate::limits::GREETINGS;

/// Longer than any test takes: a client with this much time is never removed for its age.
const AN_HOUR: Duration = Duration::from_secs(3600);

fn listener() -> (TcpListener, SocketAddr) {
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

async fn first_byte(mut caller: PendingConnection) -> Result<u8, String> {
    let read = caller.stream.read_u8().await;
    read.map_err(|error| error.to_string())
}

/// Connects from that address of this machine.
async fn connect_from(from: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::from(from), 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

const HERE: [u8; 4] = [127, 0, 0, 1];

/// Connects this number of silent clients, and waits until the first of them has been removed.
async fn flood(strangers: usize, to: SocketAddr) -> Vec<TcpStream> {
    let mut there = Vec::new();
    for _ in 0..strangers {
        there.push(connect_from(HERE, to).await);
    }
    let read = there[0].read(&mut [0]).await;
    assert!(matches!(read, Ok(0) | Err(_)), "the oldest had to go");
    there
}

/// The silent clients outnumber the places several times, and all of them are older.
#[tokio::test]
async fn a_client_that_sends_is_accepted_among_any_number_of_silent_ones() {
    let (listener, address) = listener();
    let connecting = async {
        let mut strangers = Vec::new();
        for _ in 0..3 * GREETINGS {
            strangers.push(TcpStream::connect(address).await.unwrap());
        }
        let mut ours = TcpStream::connect(address).await.unwrap();
        ours.write_u8(7).await.unwrap();
        (strangers, ours)
    };
    // With its full time for each, this would take as long as the test may.
    let mut limiter = HandshakeLimiter::new(&listener, GREETINGS, AN_HOUR);
    let ((mut strangers, _ours), known) = tokio::join!(connecting, limiter.next(first_byte));
    assert_eq!(known, 7);
    assert!(limiter.greetings.len() <= GREETINGS);
    assert!(limiter.turned_away as usize >= 2 * GREETINGS);
    let read = strangers[0].read(&mut [0]).await;
    assert!(matches!(read, Ok(0) | Err(_)), "the oldest had to go");
}

#[tokio::test]
async fn a_silent_client_is_disconnected() {
    let (listener, address) = listener();
    let mut silent = TcpStream::connect(address).await.unwrap();
    let mut limiter = HandshakeLimiter::new(&listener, GREETINGS, Duration::from_millis(20));
    tokio::select! {
        known = limiter.next(first_byte) => panic!("nobody belongs here: {known}"),
        read = silent.read_u8() => assert!(read.is_err()),
    }
}

/// The client is older than all of them and has sent nothing either.
#[tokio::test]
async fn a_flood_from_one_host_excludes_no_other_host() {
    let (listener, address) = listener();
    let mut limiter = HandshakeLimiter::new(&listener, 8, AN_HOUR);
    let connecting = async {
        let mut ours = connect_from([127, 0, 0, 2], address).await;
        let strangers = flood(40, address).await;
        ours.write_u8(7).await.unwrap();
        (ours, strangers)
    };
    let (_there, known) = tokio::join!(connecting, limiter.next(first_byte));
    assert_eq!(known, 7);
}

/// The client comes from the same host as the silent ones, and is older than all of them.
#[tokio::test]
async fn a_client_with_a_renewed_lease_keeps_its_place_longer() {
    let (listener, address) = listener();
    for settles in [false, true] {
        let mut limiter = HandshakeLimiter::new(&listener, 8, AN_HOUR);
        let both_bytes = move |mut caller: PendingConnection| async move {
            let first = caller.stream.read_u8().await.map_err(|e| e.to_string())?;
            match settles {
                true => caller.lease.settle(),
                false => caller.lease.renew(AN_HOUR),
            }
            Ok::<_, String>((first, first_byte(caller).await?))
        };
        let connecting = async {
            let mut ours = connect_from(HERE, address).await;
            ours.write_u8(7).await.unwrap();
            let strangers = flood(40, address).await;
            ours.write_u8(8).await.unwrap();
            (ours, strangers)
        };
        let (_there, known) = tokio::join!(connecting, limiter.next(both_bytes));
        assert_eq!(known, (7, 8));
    }
}

#[test]
fn a_host_is_an_address_or_half_of_one() {
    let of = |address: &str| host(format!("{address}:7").parse().unwrap());
    assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    assert_eq!(of("10.0.0.1"), of("[::ffff:10.0.0.1]"));
    assert_eq!(of("[2001:db8::1]"), of("[2001:db8::ffff:0:0:1]"));
    assert_ne!(of("[2001:db8::1]"), of("[2001:db8:0:1::1]"));
}
