//! What stands on the wire between two PEs and knows nothing of what is said: it passes bytes
//! on, and when it is told to, does something to what goes up.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// What is done to the bytes that go up.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A bit of one byte is another.
    Flip,
    /// Half of what comes is passed on, and behind it nothing but the end.
    Cut,
}

/// Stands there.
#[derive(Debug)]
pub struct Tap(Arc<AtomicBool>);

impl Tap {
    /// Stands at `at` for whoever listens at `behind`, from now on.
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

    /// Does it, once, to what goes up next.
    pub fn strike(&self) {
        self.0.store(true, Relaxed);
    }
}

/// Passes on what comes until it ends, and then that end.
fn pass(mut from: TcpStream, mut to: TcpStream, fault: Option<(Fault, Arc<AtomicBool>)>) {
    let mut block = [0; 1 << 16];
    let passed = (|| -> io::Result<()> {
        loop {
            let length = from.read(&mut block)?;
            if length == 0 {
                return Ok(());
            }
            let strikes = fault.as_ref().filter(|(_, now)| now.swap(false, Relaxed));
            match strikes {
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
