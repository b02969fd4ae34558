//! What stands on the wire between two PEs and knows nothing of what is said: it passes bytes
//! on, and does something to one place in what goes up.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;

/// What is done to the bytes that go up.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// A bit of one byte is another.
    Flip,
    /// Nothing comes behind it but the end.
    Cut,
}

/// Stands at `at` for whoever listens at `behind`, from now on; for the first caller, it does
/// this once `skip` bytes have gone up.
#[track_caller]
pub fn stand(at: SocketAddr, behind: SocketAddr, skip: u64, fault: Fault) {
    let listener = TcpListener::bind(at).expect("the loopback has it");
    thread::spawn(move || {
        let mut fault = Some(fault);
        for child in listener.incoming().flatten() {
            let Ok(parent) = TcpStream::connect(behind) else {
                continue;
            };
            let again = |stream: &TcpStream| stream.try_clone().expect("it can be");
            let (down, fault) = ((again(&parent), again(&child)), fault.take());
            thread::spawn(move || pass(down.0, down.1, u64::MAX, None));
            thread::spawn(move || pass(child, parent, skip, fault));
        }
    });
}

/// Passes on what comes until it ends, and then that end.
fn pass(mut from: TcpStream, mut to: TcpStream, skip: u64, fault: Option<Fault>) {
    let (mut block, mut left) = ([0; 1 << 16], skip);
    let passed = (|| -> io::Result<()> {
        loop {
            let length = match from.read(&mut block)? as u64 {
                0 => return Ok(()),
                length => length,
            };
            let here = (left < length).then_some(left as usize);
            left = if here.is_some() {
                u64::MAX
            } else {
                left - length
            };
            let block = &mut block[..length as usize];
            match (here, fault) {
                (Some(place), Some(Fault::Flip)) => {
                    block[place] ^= 1;
                    to.write_all(block)?;
                }
                (Some(place), Some(Fault::Cut)) => return to.write_all(&block[..place]),
                _ => to.write_all(block)?,
            }
        }
    })();
    // Either end may be gone already.
    let _ = (passed, to.shutdown(Shutdown::Write));
}
