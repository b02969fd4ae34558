//! A relay of bytes between two PEs. On request, it damages the bytes to the parent.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// The damage.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// One bit of one byte is flipped.
    Flip,
    /// Half of the bytes are forwarded, and then the connection is closed.
    Cut,
}

/// A running relay.
#[derive(Debug)]
pub struct Tap(Arc<AtomicBool>);

impl Tap {
    /// Starts a relay that listens at `at` and forwards to `behind`.
    #[track_caller]
    pub fn stand(at: SocketAddr, behind: SocketAddr, fault: Fault) -> Tap {
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
    pub fn strike(&self) {
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
