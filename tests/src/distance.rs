//! A listener that is far away: bytes in both directions arrive later.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of bytes read at once.
const PART: usize = 64 * 1024;

/// Forwards connections from `near` to `far`, with every byte `delay` later in both directions; the
/// connection itself is delayed as well. Runs until the test ends.
#[track_caller]
pub fn far_away(near: SocketAddr, far: SocketAddr, delay: Duration) {
    let listener = TcpListener::bind(near).expect("the loopback has it");
    thread::spawn(move || {
        while let Ok((caller, _)) = listener.accept() {
            thread::spawn(move || {
                let (first, from_caller) = delayed(&caller, delay);
                thread::sleep(delay);
                // The listener may have ended.
                let Ok(called) = TcpStream::connect(far) else {
                    return;
                };
                let _ = called.set_nodelay(true);
                let _ = caller.set_nodelay(true);
                let (second, from_called) = delayed(&called, delay);
                let back = thread::spawn(move || arrive(&from_called, &caller));
                arrive(&from_caller, &called);
                let _ = (back.join(), first.join(), second.join());
            });
        }
    });
}

type Part = (Instant, Vec<u8>);

/// Reads immediately and sends each part with its arrival time.
fn delayed(from: &TcpStream, delay: Duration) -> (thread::JoinHandle<()>, mpsc::Receiver<Part>) {
    let (sender, parts) = mpsc::channel();
    let mut from = from.try_clone().expect("it can be");
    let reading = thread::spawn(move || {
        let mut part = vec![0; PART];
        while let Ok(bytes @ 1..) = from.read(&mut part) {
            let part = (Instant::now() + delay, part[..bytes].to_vec());
            if sender.send(part).is_err() {
                break;
            }
        }
    });
    (reading, parts)
}

fn arrive(parts: &mpsc::Receiver<Part>, mut to: &TcpStream) {
    for (at, part) in parts {
        thread::sleep(at.saturating_duration_since(Instant::now()));
        if to.write_all(&part).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
