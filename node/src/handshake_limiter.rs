//! Accepts clients of a listener that authenticate in time. Any client can connect: those that do not
//! belong to the cluster are disconnected, and however many there are, they take a bounded number of
//! descriptors and do not delay a PE.
//!
//! When all places are taken, two properties decide which clients must leave, and neither is free for
//! an attacker. One is the address: clients from the host with the most connections leave first, so a
//! flood from another host removes no PE. But a flood may come from the same host, or from very many.
//! So each client also has a lease, during which no other client can take its place. The lease is short
//! at first, since a PE sends as soon as it is connected. It is longer after each message that only a
//! client sends which implements the protocol, because the next message may take a round trip around
//! the earth. It has no end once the client's certificate was verified. Among the clients that must leave,
//! the one whose lease ended first leaves first. While all leases last, new clients wait in the
//! kernel's queue, a second for each time that all places are taken by clients that began correctly.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::limits::{
    ACCEPT_PAUSE, BACKLOG, DISCONNECTED_AT_ONCE, GRACE, LAST_MESSAGE, WARNED_REJECTIONS,
};
use crate::runtime::joined;
use crate::system::sockets::tcp_socket;

/// Creates a listener for many simultaneous connections.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = tcp_socket(address)?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A connected client that is not authenticated yet.
#[derive(Debug)]
pub struct PendingConnection {
    pub stream: TcpStream,
    pub lease: Lease,
}

/// The time until which a client keeps its place; `None` for the rest of its handshake.
#[derive(Clone, Debug)]
pub struct Lease(Arc<Mutex<Option<Instant>>>);

impl Lease {
    pub fn new(time: Duration) -> Lease {
        Lease(Arc::new(Mutex::new(Some(Instant::now() + time))))
    }

    /// Extends the lease from now on, because the client has sent a valid message.
    pub fn renew(&self, time: Duration) {
        *self.end() = Some(Instant::now() + time);
    }

    /// Makes the lease endless, because the client's certificate is valid.
    pub fn settle(&self) {
        *self.end() = None;
    }

    fn end(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listener, and its clients that are not authenticated yet.
#[derive(Debug)]
pub struct HandshakeLimiter<'a, T> {
    listener: &'a TcpListener,
    /// Maximum number of such clients.
    places: usize,
    /// Time limit of a handshake.
    handshake: Duration,
    greetings: JoinSet<Result<T, (SocketAddr, String)>>,
    /// The clients that were not notified; some may have left.
    waiting: Vec<Waiting>,
    /// No connection is accepted before this time.
    closed_until: Instant,
    turned_away: u64,
}

/// A client that is not authenticated yet.
#[derive(Debug)]
struct Waiting {
    host: IpAddr,
    lease: Lease,
    notice: CancellationToken,
    greeting: AbortHandle,
}

impl<'a, T: Send + 'static> HandshakeLimiter<'a, T> {
    pub fn new(
        listener: &'a TcpListener,
        places: usize,
        handshake: Duration,
    ) -> HandshakeLimiter<'a, T> {
        HandshakeLimiter {
            listener,
            places,
            handshake,
            greetings: JoinSet::new(),
            waiting: Vec::new(),
            closed_until: Instant::now(),
            turned_away: 0,
        }
    }

    /// Waits for the next client that `greet` authenticates. Cancel safe.
    pub async fn next<F>(&mut self, greet: impl Fn(PendingConnection) -> F) -> T
    where
        F: Future<Output = Result<T, String>> + Send + 'static,
    {
        loop {
            let now = Instant::now();
            let opens = match self.greetings.len() < self.places {
                true => self.closed_until,
                false => self.make_way(now).max(self.closed_until),
            };
            tokio::select! {
                biased;
                Some(greeted) = self.greetings.join_next() => match greeted {
                    Ok(Ok(known)) => return known,
                    Ok(Err((address, why))) => self.turn_away(address, &why),
                    panicked => drop(joined(panicked)),
                },
                () = sleep_until(opens), if opens > now => {}
                accepted = self.listener.accept(), if opens <= now => match accepted {
                    Ok((stream, address)) => self.start_handshake(stream, address, &greet),
                    // Out of descriptors, for example.
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        self.make_way(now);
                        self.closed_until = now + ACCEPT_PAUSE;
                    }
                },
            }
        }
    }

    fn start_handshake<F>(
        &mut self,
        stream: TcpStream,
        address: SocketAddr,
        greet: impl Fn(PendingConnection) -> F,
    ) where
        F: Future<Output = Result<T, String>> + Send + 'static,
    {
        let lease = Lease::new(GRACE);
        let caller = PendingConnection {
            stream,
            lease: lease.clone(),
        };
        let greeting = timeout(self.handshake, greet(caller));
        let notice = CancellationToken::new();
        let noticed = notice.clone();
        let grace_period = async move {
            noticed.cancelled().await;
            sleep(LAST_MESSAGE).await;
        };
        let greeting = self.greetings.spawn(async move {
            let greeted = tokio::select! {
                biased;
                greeted = greeting => greeted.unwrap_or_else(|_| Err("it sent nothing".to_owned())),
                () = grace_period => Err("others came, and it had not said who it is".to_owned()),
            };
            greeted.map_err(|why| (address, why))
        });
        self.waiting.push(Waiting {
            host: host(address),
            lease,
            notice,
            greeting,
        });
        if self.waiting.len() > 2 * self.places {
            self.waiting.retain(|one| !one.greeting.is_finished());
        }
    }

    /// Notifies clients with expired leases, if there are any and no client is about to leave.
    /// Returns the time of the next check, unless a client leaves before.
    fn make_way(&mut self, now: Instant) -> Instant {
        self.waiting.retain(|one| !one.greeting.is_finished());
        if self.waiting.len() < self.greetings.len() {
            return now + LAST_MESSAGE;
        }
        let mut callers = HashMap::new();
        for one in &self.waiting {
            *callers.entry(one.host).or_insert(0_usize) += 1;
        }
        let most = callers.values().copied().max().unwrap_or(0);
        let ends = self.waiting.iter().enumerate().filter_map(|(place, one)| {
            let is_of_most = callers.get(&one.host) == Some(&most);
            Some((is_of_most.then(|| *one.lease.end())??, place))
        });
        let mut ends: Vec<(Instant, usize)> = ends.collect();
        ends.sort_unstable();
        let over = ends.iter().take_while(|(end, _)| *end <= now);
        // Only as many of one host as leave it with no fewer than others.
        let over = over.take(DISCONNECTED_AT_ONCE.min(most));
        let mut places: Vec<usize> = over.map(|(_, place)| *place).collect();
        if places.is_empty() {
            let first = ends.first().map(|(end, _)| *end);
            return first.unwrap_or(now + self.handshake);
        }
        places.sort_unstable();
        for place in places.into_iter().rev() {
            self.waiting.swap_remove(place).notice.cancel();
        }
        now + LAST_MESSAGE
    }

    fn turn_away(&mut self, address: SocketAddr, why: &str) {
        self.turned_away += 1;
        match self.turned_away {
            ..WARNED_REJECTIONS => tracing::warn!(%address, why, "turned a connection away"),
            WARNED_REJECTIONS => {
                tracing::warn!(%address, why, "turned a connection away, and not the first")
            }
            _ => tracing::debug!(%address, why, "turned a connection away"),
        }
    }
}

/// Returns the host of an address: an IPv6 host has as many addresses as it likes below 64 bits.
fn host(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(network.into())
        }
        address => address,
    }
}

#[cfg(test)]
mod tests;
