//! A connection whose other end must show that it lives: reading from one that has been
//! silent for too long fails, and so does writing to one that takes nothing.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// The other end shows no life. It is the source of an [`io::Error`] of the kind
/// `TimedOut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Lifeless {
    /// Not a byte came.
    #[error("silent for {:.1} s", .0.as_secs_f64())]
    Silent(Duration),
    /// Not a byte was taken.
    #[error("taking no bytes for {:.1} s", .0.as_secs_f64())]
    Stalled(Duration),
}

impl Lifeless {
    /// Whether that is what an error says.
    pub fn of(error: &io::Error) -> Option<Lifeless> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// How long the other end of a connection may show no life.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Until its first byte.
    pub first: Duration,
    /// Between its bytes.
    pub silence: Duration,
    /// Without taking a byte that is to be written.
    pub write: Duration,
}

/// A connection with limits on how long nothing happens.
#[derive(Debug)]
pub struct Lively<S> {
    stream: S,
    patience: Patience,
    reading: Wait,
    writing: Wait,
}

impl<S> Lively<S> {
    /// Watches a connection from now on. The limits hold while somebody reads or writes.
    pub fn new(stream: S, patience: Patience) -> Lively<S> {
        Lively {
            stream,
            patience,
            reading: Wait::new(patience.first),
            writing: Wait::new(patience.write),
        }
    }
}

/// A wait for something to happen.
#[derive(Debug)]
struct Wait {
    limit: Duration,
    under_way: bool,
    alarm: Pin<Box<Sleep>>,
}

impl Wait {
    fn new(limit: Duration) -> Wait {
        Wait {
            limit,
            under_way: false,
            alarm: Box::pin(sleep(limit)),
        }
    }

    /// Ready when nothing has happened for as long as it may.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.under_way {
            self.under_way = true;
            self.alarm.as_mut().reset(Instant::now() + self.limit);
        }
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            // An alarm that is heard late says that this process was stopped, or got no
            // processor: then the other end is not to blame.
            let late = self.alarm.deadline().elapsed();
            if late < self.limit / 4 {
                return Poll::Ready(());
            }
            self.alarm.as_mut().reset(Instant::now() + self.limit);
        }
    }

    /// What comes of an attempt: done, or to be waited for, or given up.
    fn attempt<T>(
        &mut self,
        cx: &mut Context<'_>,
        done: Poll<io::Result<T>>,
        lifeless: fn(Duration) -> Lifeless,
    ) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.under_way = false;
            return done;
        }
        ready!(self.poll(cx));
        let why = lifeless(self.limit);
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lively<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        if matches!(read, Poll::Ready(Ok(()))) {
            this.reading.limit = this.patience.silence;
        }
        this.reading.attempt(cx, read, Lifeless::Silent)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Lively<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.writing.attempt(cx, written, Lifeless::Stalled)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        this.writing.attempt(cx, flushed, Lifeless::Stalled)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.writing.attempt(cx, shut, Lifeless::Stalled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    const PATIENCE: Patience = Patience {
        first: Duration::from_secs(30),
        silence: Duration::from_secs(3),
        write: Duration::from_secs(10),
    };

    /// The clock stands still but for waits, which it skips.
    fn on_a_virtual_clock(test: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build();
        runtime.expect("it can be built").block_on(test);
    }

    #[test]
    fn any_byte_is_life_and_silence_is_not() {
        on_a_virtual_clock(async {
            let (ours, mut theirs) = duplex(64);
            let mut ours = Lively::new(ours, PATIENCE);
            let began = Instant::now();
            let talk = async {
                for pause in [29, 2, 2, 2] {
                    sleep(Duration::from_secs(pause)).await;
                    theirs.write_all(b"x").await.expect("it is open");
                }
                theirs
            };
            let listen = async {
                for _ in 0..4 {
                    ours.read_u8().await.expect("it lives");
                }
                ours.read_u8().await.expect_err("it is silent")
            };
            let (_open, error) = tokio::join!(talk, listen);
            assert_eq!(error.to_string(), "silent for 3.0 s");
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            let silent = Lifeless::Silent(PATIENCE.silence);
            assert_eq!(Lifeless::of(&error), Some(silent));
            assert_eq!(began.elapsed().as_secs(), 29 + 2 + 2 + 2 + 3);
        });
    }

    #[test]
    fn what_takes_some_bytes_is_alive_and_what_takes_none_is_not() {
        on_a_virtual_clock(async {
            let (ours, mut theirs) = duplex(10);
            let mut ours = Lively::new(ours, PATIENCE);
            let take = async {
                for _ in 0..3 {
                    sleep(Duration::from_secs(9)).await;
                    theirs.read_u8().await.expect("it is open");
                }
                theirs
            };
            let (_open, written) = tokio::join!(take, ours.write_all(&[0; 100]));
            let error = written.expect_err("it is stalled");
            assert_eq!(error.to_string(), "taking no bytes for 10.0 s");
        });
    }
}
