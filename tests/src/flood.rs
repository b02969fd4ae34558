//! Unauthenticated clients in large numbers, at a listener of a process.

use std::collections::VecDeque;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::{Resource, getrlimit};

const THREADS: u64 = 4;
/// Time to connect; then another client connects.
const PATIENCE: Duration = Duration::from_millis(100);

/// Unauthenticated clients that connect one after the other and stay while descriptors are left.
#[derive(Debug)]
pub struct Flood {
    connections: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Flood {
    /// Starts `strangers` clients of `address`: most send nothing, some send invalid bytes. Each of
    /// `share` simultaneous floods uses its part of the descriptors.
    pub fn at(address: SocketAddr, strangers: u64, share: u64) -> Flood {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        // Two tests run at a time, and both need some descriptors for themselves.
        let ours = limit / 5 * 2;
        let open = ours.min(strangers * share) / share / THREADS;
        let connections = Arc::<AtomicU64>::default();
        let is_over = Arc::<AtomicBool>::default();
        let threads = (0..THREADS).map(|_| {
            let (connections, is_over) = (connections.clone(), is_over.clone());
            thread::spawn(move || {
                let mut staying = VecDeque::new();
                while !is_over.load(Relaxed) && connections.fetch_add(1, Relaxed) < strangers {
                    // A client that is not accepted counts as well.
                    let Ok(mut stranger) = TcpStream::connect_timeout(&address, PATIENCE) else {
                        continue;
                    };
                    let rubbish: &[u8] = match connections.load(Relaxed) % 10 {
                        0 => &[0; 64],
                        1 => &[0xFF; 64],
                        // The start of a handshake that never ends.
                        2 => &[0, 0, 0],
                        _ => &[],
                    };
                    let _ = stranger.write_all(rubbish);
                    staying.push_back(stranger);
                    if staying.len() as u64 > open {
                        staying.pop_front();
                    }
                }
                while !is_over.load(Relaxed) {
                    thread::park_timeout(PATIENCE);
                }
            })
        });
        Flood {
            threads: threads.collect(),
            connections,
            is_over,
        }
    }

    /// Returns the number of clients so far.
    pub fn received(&self) -> u64 {
        self.connections.load(Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}
