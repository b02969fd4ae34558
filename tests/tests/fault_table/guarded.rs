//! Rows 14 and 15 with TLS on every connection. Rows 1 to 3 have it in `deaths` and `silence`.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use flitcast_tests::Finished;
use flitcast_tests::joining::Joining;

use crate::{alone, failing};

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// One bit of one byte is flipped.
    Flip,
    /// Half of the bytes are forwarded, and then the connection is closed.
    Cut,
}

/// A relay of bytes between two PEs. On request, it damages the bytes to the parent.
struct Tap(Arc<AtomicBool>);

impl Tap {
    /// Starts a relay that listens at `at` and forwards to `behind`.
    fn stand(at: SocketAddr, behind: SocketAddr, fault: Fault) -> Tap {
        let listener = TcpListener::bind(at).expect("the loopback has it");
        let strikes = Arc::new(AtomicBool::new(false));
        let tap = Tap(strikes.clone());
        thread::spawn(move || {
            for child in listener.incoming().flatten() {
                let Ok(parent) = TcpStream::connect(behind) else {
                    continue;
                };
                let again = |stream: &TcpStream| stream.try_clone().expect("it can be");
                let (from, to) = (again(&parent), again(&child));
                thread::spawn(move || pass(from, to, None));
                let fault = Some((fault, strikes.clone()));
                thread::spawn(move || pass(child, parent, fault));
            }
        });
        tap
    }

    /// Damages the next bytes to the parent, once.
    fn strike(&self) {
        self.0.store(true, Relaxed);
    }
}

/// Forwards bytes until the end of the stream, and then closes the other direction.
fn pass(mut from: TcpStream, mut to: TcpStream, fault: Option<(Fault, Arc<AtomicBool>)>) {
    let mut block = [0; 1 << 16];
    let passed = (|| -> io::Result<()> {
        loop {
            let length = from.read(&mut block)?;
            if length == 0 {
                return Ok(());
            }
            match fault.as_ref().filter(|(_, now)| now.swap(false, Relaxed)) {
                Some((Fault::Flip, _)) => block[length / 2] ^= 1,
                Some((Fault::Cut, _)) => return to.write_all(&block[..length / 2]),
                None => {}
            }
            to.write_all(&block[..length])?;
        }
    })();
    // Either end may be gone already.
    let _ = (passed, to.shutdown(Shutdown::Write));
}

/// Runs a gather over P0 - P1 - P2 with this fault on the lower edge during the round.
fn tapped(row: &str, case: &str, fault: Fault) -> Finished {
    let cluster = Joining::new(&[0, 1], "60s");
    // P2 finds another process at P1's address.
    let behind = format!("{}:7118", cluster.address(200));
    let at = format!("{}:7118", cluster.address(2));
    let parse = |text: &str| text.parse().expect("an address");
    let tap = Tap::stand(parse(&at), parse(&behind), fault);
    let at_p1 = format!("--listen {behind}");
    let nodes = [(0, ""), (1, &*at_p1), (2, "")]
        .map(|(pe, more)| cluster.node(pe, &format!("--credentials DIR/ca {more}")));
    let line = "gather --algorithm shoulder-tap --lengths 0,400GiB -v --credentials DIR/ca";
    let mut running = cluster.command(line);
    running.wait_for(&["triggered"]);
    let finished = failing(row, case, Some(1.0), running, |_| tap.strike());
    finished.stderr_has(&["where: P", "not gathered: P2 h2, "]);
    for node in nodes {
        node.finish();
    }
    finished
}

#[test]
fn row_14_over_tls_one_bit_is_flipped() {
    let _alone = alone();
    let finished = tapped("14", "TLS: a flipped bit on an edge", Fault::Flip);
    let expected = "error: P1 h1: the connection to P2 h2 at 127.";
    finished.stderr_has(&[expected, "was changed on the way"]);
}

#[test]
fn row_15_over_tls_a_frame_is_cut_off() {
    let _alone = alone();
    let finished = tapped("15", "TLS: a record is cut off, then FIN", Fault::Cut);
    // Inside a frame, or at the end of the last complete record.
    finished.stderr_has(&["error: P1 h1: P2 h2 at 127.", "closed the connection"]);
}
