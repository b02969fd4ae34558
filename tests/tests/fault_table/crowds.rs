//! Rows 17 and 20: clients that hold their connections as long as they can, send as much as they
//! can, and connect again.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flitcast_tests::crowd::{Crowd, client_hello, endless_client_hello};
use flitcast_tests::distance::far_away;
use flitcast_tests::flitcast;
use flitcast_tests::joining::{Joining, leave};
use flitcast_tests::processes::{descriptors, eventually, memory_kib, until};

use crate::{alone, timed};

const CALLERS: usize = 1000;
const MIB: u64 = 1024;

/// The messages of clients that take most memory, or once did.
type Opening = fn() -> Vec<u8>;
const PLAIN: [(&str, Opening); 2] = [
    ("16 MiB announced, 128 KiB sent", || {
        frame(16 << 20, 128 << 10)
    }),
    ("4 KiB announced, all but a byte sent", || frame(4096, 4095)),
];
const TLS: [(&str, Opening); 4] = [
    ("silent", Vec::new),
    ("64 KiB of a ClientHello", endless_client_hello),
    ("4 KiB of one, all but a byte sent", || {
        endless_client_hello()[..4095].to_vec()
    }),
    ("a whole one, and half a record", || {
        let record = [0x17, 3, 3, 0x40, 0];
        let mut opening = [client_hello(), record.to_vec()].concat();
        opening.resize(4095, 7);
        opening
    }),
];

fn frame(announced: u32, sent: usize) -> Vec<u8> {
    [announced.to_be_bytes().to_vec(), vec![7; sent]].concat()
}

/// Measures the memory that a process needs for a thousand of them.
fn besieged(who: &str, pid: u32, address: SocketAddr, (case, opening): (&str, Opening)) {
    let before = memory_kib(pid);
    let crowd = Crowd::at(address, CALLERS, move |_| opening());
    // Until they send no more, or have reconnected several times.
    let mut sent = (0, Instant::now());
    eventually("they have sent all that they can", || {
        let now = crowd.received_bytes();
        if now != sent.0 {
            sent = (now, Instant::now());
        }
        let stay = descriptors(pid) > CALLERS && sent.1.elapsed() > Duration::from_millis(300);
        (stay || crowd.received() > 5 * CALLERS as u64).then_some(())
    });
    let more = memory_kib(pid).saturating_sub(before);
    let mib = more as f64 / MIB as f64;
    println!("| 17 | {who}, {CALLERS} callers, {case} | {mib:.1} MiB | 16 MiB |");
    assert!(more < 16 * MIB, "{who}, {case}: {more} KiB");
    drop(crowd);
    until("they are gone", || descriptors(pid) < CALLERS / 10);
}

#[test]
fn row_17_a_thousand_callers_take_little_memory_of_the_coordinator() {
    let _alone = alone();
    for (who, guard, openings) in [
        ("the coordinator, plain", "--insecure", &PLAIN[..]),
        ("the coordinator, TLS", "--credentials DIR/ca", &TLS),
    ] {
        for &opening in openings {
            let cluster = Joining::new(&[0], "60s");
            let line = format!("gather --size 1KiB --timeouts handshake=60s {guard}");
            let running = cluster.command(&line);
            let address: SocketAddr = cluster.at().parse().expect("it is one");
            eventually("it listens", || TcpStream::connect(address).ok());
            besieged(who, running.pid(), address, opening);
        }
    }
}

/// P0 waits 10 s for P1, which connects to the test and gets no answer.
#[test]
fn row_17_a_thousand_callers_take_little_memory_of_a_pe() {
    let _alone = alone();
    let hello: [(&str, Opening); 1] = [("96 bytes announced, all but one sent", || frame(96, 95))];
    for (who, guard, openings) in [
        ("a PE, plain", "--insecure", &hello[..]),
        ("a PE, TLS", "--credentials DIR/ca", &TLS),
    ] {
        for opening in openings {
            let cluster = Joining::new(&[0], "60s");
            cluster.reroute(1, cluster.address(101));
            let at = SocketAddr::new(cluster.address(1), 7300);
            let elsewhere = SocketAddr::new(cluster.address(101), at.port());
            let elsewhere = TcpListener::bind(elsewhere).expect("the loopback has it");

            let line = format!("gather --size 1KiB --timeouts handshake=60s {guard}");
            let _running = cluster.command(&line);
            let p0 = cluster.node(0, &format!("{guard} --listen {at}"));
            let _p1 = cluster.node(1, guard);
            let _unanswered = elsewhere.accept().expect("P1 calls");

            besieged(who, p0.pid(), at, *opening);
        }
    }
}

/// The PEs have a round trip of 300 ms to the coordinator, and P1 to P0. Both listeners have more
/// unauthenticated clients than places: some send nothing, some begin a handshake as a PE does, and
/// all reconnect when they are disconnected.
#[test]
fn row_20_far_pes_join_past_strangers_that_reconnect() {
    let _alone = alone();
    let delay = Duration::from_millis(150);
    let cluster = Joining::new(&[0], "60s");
    cluster.reroute(1, cluster.address(101));
    let to_p0 = SocketAddr::new(cluster.address(1), 7300);
    far_away(SocketAddr::new(cluster.address(101), 7300), to_p0, delay);
    let to_coordinator: SocketAddr = cluster.at().parse().expect("it is one");
    let from_afar = SocketAddr::new(cluster.address(102), to_coordinator.port());
    far_away(from_afar, to_coordinator, delay);
    let opening = |caller| match caller % 3 {
        0 => Vec::new(),
        1 => client_hello()[..50].to_vec(),
        _ => client_hello(),
    };
    let running = cluster.guarded("gather --size 1KiB --format json");
    eventually("it listens", || TcpStream::connect(to_coordinator).ok());
    let crowd = Crowd::at(to_coordinator, 1500, opening);
    until("the door is full", || crowd.received() > 2000);
    let node = |pe: u32, more: &str| {
        let credentials = cluster.path("ca").display().to_string();
        let line = format!("node --pe {pe} --join {from_afar} --credentials {credentials} {more}");
        flitcast_tests::start(line.split_whitespace())
    };
    let case = "PEs 150 ms away, 1,500 strangers at either door: all join";
    let (nodes, second) = timed("20", case, None, || {
        let p0 = node(0, &format!("--listen {to_p0}"));
        eventually("P0 listens", || TcpStream::connect(to_p0).ok());
        let second = Crowd::at(to_p0, 1500, opening);
        let nodes = [p0, node(1, "")];
        running.finish().ok().report().assert_all_arrived();
        (nodes, second)
    });
    let connected = [crowd, second].map(|crowd| crowd.received());
    println!("| 20 | by then there had come {connected:?} | - | - |");
    leave(nodes);
}

#[test]
fn row_20_idle_clients_block_no_download_of_the_program() {
    let _alone = alone();
    let mut serving = Command::new(flitcast())
        .args(["self-serve", "127.0.0.1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("flitcast was built");
    let mut line = String::new();
    let mut stdout = BufReader::new(serving.stdout.take().expect("it is piped"));
    stdout.read_line(&mut line).expect("it prints its port");
    let port = line.trim().rsplit(' ').next().expect("it has words");
    let address: SocketAddr = format!("127.0.0.1:{port}").parse().expect("it is one");
    let connect = |_| TcpStream::connect(address).expect("it listens");
    let _idle: Vec<TcpStream> = (0..200).map(connect).collect();
    // A debug build is longer than a release; its beginning shows as much.
    let program = std::fs::read(flitcast()).expect("it was built");
    let program = &program[..program.len().min(16 << 20)];
    let case = "200 who take nothing, then one who takes";
    let taken = timed("20", case, Some(20.0), || {
        let (mut taking, mut taken) = (connect(0), vec![0; program.len()]);
        let patience = taking.set_read_timeout(Some(Duration::from_secs(60)));
        patience.expect("it can be set");
        taking.read_exact(&mut taken).expect("it is given");
        taken
    });
    assert!(taken == program);
    // Its launcher has ended.
    drop(serving.stdin.take());
    assert!(serving.wait().expect("it is ours").success());
}
