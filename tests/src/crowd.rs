//! Clients that try to exclude others from a listener: each sends some bytes, stays as long as
//! possible, and connects again as soon as it is disconnected.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::background::Background;

/// Time to connect; then a client tries again.
const PATIENCE: Duration = Duration::from_millis(100);
/// Interval between checks for the end.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// Clients of a listener.
pub struct Crowd {
    connections: Background,
    sent_bytes: Arc<AtomicU64>,
}

struct Caller {
    stream: TcpStream,
    opening: Vec<u8>,
    sent: usize,
}

impl Crowd {
    /// Starts `callers` clients of `address`. Each sends the bytes that `opening` returns for its
    /// number, as far as they are accepted.
    pub fn at(
        address: SocketAddr,
        callers: usize,
        opening: impl Fn(usize) -> Vec<u8> + Clone + Send + 'static,
    ) -> Crowd {
        let sent_bytes = Arc::<AtomicU64>::default();
        let sent = sent_bytes.clone();
        let connections = Background::start(1, move |shared| {
            let mut all: Vec<Option<Caller>> = (0..callers).map(|_| None).collect();
            while !shared.is_over() {
                for (number, place) in all.iter_mut().enumerate() {
                    if place.is_none() {
                        *place = Caller::connect(address, opening(number));
                        shared.count(u64::from(place.is_some()));
                    }
                }
                wait(&all);
                for place in &mut all {
                    if let Some(caller) = place {
                        match caller.continue_sending() {
                            Some(bytes) => drop(sent.fetch_add(bytes, Relaxed)),
                            None => *place = None,
                        }
                    }
                }
            }
        });
        Crowd {
            connections,
            sent_bytes,
        }
    }

    pub fn received(&self) -> u64 {
        self.connections.counted()
    }

    /// Returns the number of bytes that the system has accepted.
    pub fn received_bytes(&self) -> u64 {
        self.sent_bytes.load(Relaxed)
    }
}

impl Caller {
    fn connect(address: SocketAddr, opening: Vec<u8>) -> Option<Caller> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(Caller {
            stream,
            opening,
            sent: 0,
        })
    }

    /// Continues to send; returns the number of bytes that were accepted, or `None` if the client
    /// was disconnected.
    fn continue_sending(&mut self) -> Option<u64> {
        let before = self.sent;
        while self.sent < self.opening.len() {
            match self.stream.write(&self.opening[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return None,
            }
        }
        loop {
            match self.stream.read(&mut [0; 4096]) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return None,
            }
        }
        Some((self.sent - before) as u64)
    }
}

fn wait(all: &[Option<Caller>]) {
    let watched = |caller: &'_ Caller| match caller.sent < caller.opening.len() {
        true => PollFlags::IN | PollFlags::OUT,
        false => PollFlags::IN,
    };
    let there = all.iter().flatten();
    let mut polled: Vec<PollFd<'_>> = there
        .map(|caller| PollFd::new(&caller.stream, watched(caller)))
        .collect();
    let _ = poll(&mut polled, Some(&LOOK));
}

/// Returns the first message of a TLS 1.3 client, complete and valid.
pub fn client_hello() -> Vec<u8> {
    let mut extensions = Vec::new();
    for (kind, body) in [
        // TLS 1.3, X25519, and signatures by ECDSA with P-256 or by Ed25519.
        (43, vec![2, 3, 4]),
        (10, vec![0, 2, 0, 0x1d]),
        (13, vec![0, 4, 4, 3, 8, 7]),
        // A share of X25519: its base point is valid.
        (51, [&[0, 36, 0, 0x1d, 0, 32, 9][..], &[0; 31]].concat()),
    ] {
        extensions.extend([0, kind, 0, body.len() as u8]);
        extensions.extend(body);
    }
    let mut hello = vec![3, 3];
    hello.extend([7; 32]);
    // No session, one cipher suite, no compression.
    hello.extend([0, 0, 2, 0x13, 1, 1, 0]);
    hello.extend([0, extensions.len() as u8]);
    hello.extend(extensions);
    let mut record = vec![0x16, 3, 1, 0, hello.len() as u8 + 4];
    record.extend([1, 0, 0, hello.len() as u8]);
    record.extend(hello);
    record
}

/// Returns the beginning of a client hello of 64 KiB.
pub fn endless_client_hello() -> Vec<u8> {
    let mut hello = vec![1, 0, 0xff, 0xff, 3, 3];
    hello.resize(0xffff, 7);
    let records = hello.chunks(16_000).map(|part| {
        let length = (part.len() as u16).to_be_bytes();
        [&[0x16, 3, 1][..], &length, part].concat()
    });
    records.collect::<Vec<_>>().concat()
}
