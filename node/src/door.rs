//! Who comes to a listener, and says in time who it is. Anybody can come: strangers are
//! turned away, and however many there are, they take a bounded number of descriptors and
//! keep nobody waiting who belongs here.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::limits::{BACKLOG, GRACE, GREETINGS};
use crate::payload::joined;

/// After the system has refused to let somebody in, for others to close something.
const PAUSE: Duration = Duration::from_millis(50);

/// For somebody who has to make way and has spoken already to be heard all the same. When
/// this has passed, the runtime has looked at the sockets since, however late it is.
const LAST_WORD: Duration = Duration::from_millis(5);

/// So many strangers are told of; of the others only who looks closely hears.
const TOLD: u64 = 8;

/// Listens where many may come at once.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A listener, and those who have come and have yet to say who they are.
#[derive(Debug)]
pub struct Door<'a, T> {
    listener: &'a TcpListener,
    /// How long somebody may take.
    handshake: Duration,
    greetings: JoinSet<Result<T, (SocketAddr, String)>>,
    /// The oldest first; some have gone.
    waiting: VecDeque<Waiting>,
    /// Nobody is let in before.
    closed_until: Instant,
    turned_away: u64,
}

/// Somebody who has yet to say who it is.
#[derive(Debug)]
struct Waiting {
    came: Instant,
    notice: CancellationToken,
    greeting: AbortHandle,
}

impl<'a, T: Send + 'static> Door<'a, T> {
    /// Opens it.
    pub fn new(listener: &'a TcpListener, handshake: Duration) -> Door<'a, T> {
        Door {
            listener,
            handshake,
            greetings: JoinSet::new(),
            waiting: VecDeque::new(),
            closed_until: Instant::now(),
            turned_away: 0,
        }
    }

    /// The next who belongs here, which `greet` finds out. Nothing is lost if this is
    /// dropped while it waits.
    pub async fn next<F>(&mut self, greet: impl Fn(TcpStream) -> F) -> T
    where
        F: Future<Output = Result<T, String>> + Send + 'static,
    {
        loop {
            let now = Instant::now();
            let is_full = self.greetings.len() >= GREETINGS;
            if is_full {
                self.make_way(now);
            }
            let opens = match self.waiting.front() {
                Some(oldest) if is_full => self.closed_until.max(oldest.came + GRACE),
                _ if is_full => self.closed_until.max(now + LAST_WORD),
                _ => self.closed_until,
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

    fn ask<F>(&mut self, stream: TcpStream, address: SocketAddr, greet: impl Fn(TcpStream) -> F)
    where
        F: Future<Output = Result<T, String>> + Send + 'static,
    {
        let greeting = timeout(self.handshake, greet(stream));
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
                () = last_word => Err("others came, and it had said nothing".to_owned()),
            };
            said.map_err(|why| (address, why))
        });
        self.waiting.push_back(Waiting {
            came: Instant::now(),
            notice,
            greeting,
        });
        if self.waiting.len() > 2 * GREETINGS {
            self.waiting.retain(|one| !one.greeting.is_finished());
        }
    }

    /// The oldest have to go, if they had their time: who belongs here speaks at once.
    fn make_way(&mut self, now: Instant) {
        let has_to = |one: &Waiting| one.came + GRACE <= now || one.greeting.is_finished();
        while self.waiting.front().is_some_and(has_to)
            && let Some(oldest) = self.waiting.pop_front()
        {
            oldest.notice.cancel();
        }
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    async fn first_byte(mut stream: TcpStream) -> Result<u8, String> {
        stream.read_u8().await.map_err(|error| error.to_string())
    }

    /// Several times as many strangers as there is room for, all of them older.
    #[tokio::test]
    async fn who_speaks_is_let_in_past_any_number_of_the_silent() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let come = async {
            let mut strangers = Vec::new();
            for _ in 0..3 * GREETINGS {
                strangers.push(TcpStream::connect(address).await.unwrap());
            }
            let mut ours = TcpStream::connect(address).await.unwrap();
            ours.write_u8(7).await.unwrap();
            (strangers, ours)
        };
        // Had each been given its time, this would take as long as the test may.
        let mut door = Door::new(&listener, Duration::from_secs(3600));
        let ((mut strangers, _ours), known) = tokio::join!(come, door.next(first_byte));
        assert_eq!(known, 7);
        assert!(door.greetings.len() <= GREETINGS);
        assert!(door.turned_away as usize >= 2 * GREETINGS);
        let gone = strangers[0].read(&mut [0]).await;
        assert!(matches!(gone, Ok(0) | Err(_)), "the oldest had to go");
    }

    #[tokio::test]
    async fn who_says_nothing_is_not_asked_for_ever() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let silent = TcpStream::connect(listener.local_addr().unwrap()).await;
        let mut silent = silent.unwrap();
        let mut door = Door::new(&listener, Duration::from_millis(20));
        tokio::select! {
            known = door.next(first_byte) => panic!("nobody belongs here: {known}"),
            gone = silent.read_u8() => assert!(gone.is_err()),
        }
    }
}
