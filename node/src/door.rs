//! Who comes to a listener, and says in time who it is. Anybody can come: strangers are
//! turned away, and however many there are, they take a bounded number of descriptors and
//! keep nobody waiting who belongs here.
//!
//! When all places are taken, who has to make way is decided by two things that a stranger
//! cannot have for nothing. One is its address: they go first who come from the host that
//! has most callers here, so a flood from elsewhere turns nobody away. But the flood may come
//! from the same host, or from very many. So everybody has a lease as well, for which nobody
//! else can have its place: a short one to begin with, since a caller speaks as soon as it is
//! connected, wherever it is; a longer one whenever it has said what only a caller says who
//! knows the protocol, since its next word may be a way around the earth away; and one
//! without an end once its certificate was found good. Of those who have to go, whose lease
//! ended first goes first, and while all leases last, who comes waits in the kernel's queue,
//! a second for each time that the door is full of callers who know how to begin.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::blocking::joined;
use crate::limits::{BACKLOG, GRACE};
use crate::system::sockets::tcp_socket;

/// After the system has refused to let somebody in, for others to close something.
const PAUSE: Duration = Duration::from_millis(50);

/// For somebody who has to make way and has spoken already to be heard all the same. When
/// this has passed, the runtime has looked at the sockets since, however late it is.
const LAST_WORD: Duration = Duration::from_millis(5);

/// So many have to make way at a time: each time takes [`LAST_WORD`], and 10,000 a second
/// are to be let in.
const AT_A_TIME: usize = 64;

/// So many strangers are told of; of the others only who looks closely hears.
const TOLD: u64 = 8;

/// Listens where many may come at once.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = tcp_socket(address)?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Somebody who has come.
#[derive(Debug)]
pub struct Caller {
    /// Its connection.
    pub stream: TcpStream,
    /// For how long it keeps its place.
    pub lease: Lease,
}

/// Until when somebody keeps its place, whoever else comes; `None`: until its time is over.
#[derive(Clone, Debug)]
pub struct Lease(Arc<Mutex<Option<Instant>>>);

impl Lease {
    /// For so long from now on.
    pub fn new(time: Duration) -> Lease {
        Lease(Arc::new(Mutex::new(Some(Instant::now() + time))))
    }

    /// It has shown something: it keeps its place for so long from now on.
    pub fn renew(&self, time: Duration) {
        self.set(Some(Instant::now() + time));
    }

    /// It has shown that it belongs here.
    pub fn settle(&self) {
        self.set(None);
    }

    fn set(&self, end: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = end;
    }

    fn end(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A listener, and those who have come and have yet to say who they are.
#[derive(Debug)]
pub struct Door<'a, T> {
    listener: &'a TcpListener,
    /// How many may stand here at once.
    places: usize,
    /// How long somebody may take.
    handshake: Duration,
    greetings: JoinSet<Result<T, (SocketAddr, String)>>,
    /// Some have gone; those who have to go are not among them.
    waiting: Vec<Waiting>,
    /// Nobody is let in before.
    closed_until: Instant,
    turned_away: u64,
}

/// Somebody who has yet to say who it is.
#[derive(Debug)]
struct Waiting {
    host: IpAddr,
    lease: Lease,
    notice: CancellationToken,
    greeting: AbortHandle,
}

impl<'a, T: Send + 'static> Door<'a, T> {
    /// Opens it.
    pub fn new(listener: &'a TcpListener, places: usize, handshake: Duration) -> Door<'a, T> {
        Door {
            listener,
            places,
            handshake,
            greetings: JoinSet::new(),
            waiting: Vec::new(),
            closed_until: Instant::now(),
            turned_away: 0,
        }
    }

    /// The next who belongs here, which `greet` finds out. Nothing is lost if this is
    /// dropped while it waits.
    pub async fn next<F>(&mut self, greet: impl Fn(Caller) -> F) -> T
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
                    Ok((stream, address)) => self.ask(stream, address, &greet),
                    // Out of descriptors, say.
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        self.make_way(now);
                        self.closed_until = now + PAUSE;
                    }
                },
            }
        }
    }

    fn ask<F>(&mut self, stream: TcpStream, address: SocketAddr, greet: impl Fn(Caller) -> F)
    where
        F: Future<Output = Result<T, String>> + Send + 'static,
    {
        let lease = Lease::new(GRACE);
        let caller = Caller {
            stream,
            lease: lease.clone(),
        };
        let greeting = timeout(self.handshake, greet(caller));
        let notice = CancellationToken::new();
        let noticed = notice.clone();
        let last_word = async move {
            noticed.cancelled().await;
            sleep(LAST_WORD).await;
        };
        let greeting = self.greetings.spawn(async move {
            let said = tokio::select! {
                biased;
                said = greeting => said.unwrap_or_else(|_| Err("it said nothing".to_owned())),
                () = last_word => Err("others came, and it had not said who it is".to_owned()),
            };
            said.map_err(|why| (address, why))
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

    /// Some have to go whose leases are over, if there are any and nobody is about to go
    /// anyway. When it may be looked again, unless somebody goes before.
    fn make_way(&mut self, now: Instant) -> Instant {
        self.waiting.retain(|one| !one.greeting.is_finished());
        if self.waiting.len() < self.greetings.len() {
            return now + LAST_WORD;
        }
        let mut callers = HashMap::new();
        for one in &self.waiting {
            *callers.entry(one.host).or_insert(0_usize) += 1;
        }
        let most = callers.values().copied().max().unwrap_or(0);
        let ends = self.waiting.iter().enumerate().filter_map(|(place, one)| {
            let is_of_most = callers.get(&one.host) == Some(&most);
            Some((is_of_most.then(|| one.lease.end())??, place))
        });
        let mut ends: Vec<(Instant, usize)> = ends.collect();
        ends.sort_unstable();
        let over = ends.iter().take_while(|(end, _)| *end <= now);
        // Not so many of one host that others have more then.
        let mut places: Vec<usize> = over.take(AT_A_TIME.min(most)).map(|it| it.1).collect();
        if places.is_empty() {
            let first = ends.first().map(|(end, _)| *end);
            return first.unwrap_or(now + self.handshake);
        }
        places.sort_unstable();
        for place in places.into_iter().rev() {
            self.waiting.swap_remove(place).notice.cancel();
        }
        now + LAST_WORD
    }

    fn turn_away(&mut self, address: SocketAddr, why: &str) {
        self.turned_away += 1;
        match self.turned_away {
            ..TOLD => tracing::warn!(%address, why, "turned a connection away"),
            TOLD => tracing::warn!(%address, why, "turned a connection away, and not the first"),
            _ => tracing::debug!(%address, why, "turned a connection away"),
        }
    }
}

/// Whom an address belongs to: of IPv6, a host has as many as it likes below 64 bits.
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
