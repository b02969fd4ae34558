//! A connection whose other end must stay active: a read fails after too long a silence, and so does a
//! write that the other end does not accept.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, timeout};

use crate::limits::PARTS_OF_A_WAIT;

/// Waits for an attempt, at most for `limit`; then it has failed with `TimedOut`.
pub async fn in_time<T>(
    limit: Duration,
    attempt: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    let timed_out = |_| Err(io::ErrorKind::TimedOut.into());
    timeout(limit, attempt).await.unwrap_or_else(timed_out)
}

/// An inactive other end. It is the source of an [`io::Error`] of the kind `TimedOut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IdleTimeout {
    #[error("has been silent for {:.1} s", .0.as_secs_f64())]
    Silent(Duration),
    #[error("has taken no bytes for {:.1} s", .0.as_secs_f64())]
    Stalled(Duration),
}

impl IdleTimeout {
    /// Returns the inactivity that an error reports, if it does.
    pub fn of(error: &io::Error) -> Option<IdleTimeout> {
        error.get_ref()?.downcast_ref().copied()
    }
}

/// Time limits of inactivity at the other end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct IdleLimits {
    /// Time until its first byte.
    pub first: Duration,
    /// Time between its bytes.
    pub silence: Duration,
    /// Time without accepting a byte that is to be written.
    pub write: Duration,
}

/// A connection with time limits of inactivity.
#[derive(Debug)]
pub struct TimeoutStream<S> {
    stream: S,
    patience: IdleLimits,
    reading: Wait,
    writing: Wait,
}

impl<S> TimeoutStream<S> {
    /// Adds limits to a connection. They apply during reads and writes.
    pub fn new(stream: S, patience: IdleLimits) -> TimeoutStream<S> {
        TimeoutStream {
            stream,
            patience,
            reading: Wait::new(patience.first),
            writing: Wait::new(patience.write),
        }
    }
}

/// A wait for activity.
#[derive(Debug)]
struct Wait {
    limit: Duration,
    under_way: bool,
    /// Number of parts of the limit that have passed.
    passed: u32,
    /// The end of the next part.
    alarm: Pin<Box<Sleep>>,
}

impl Wait {
    fn new(limit: Duration) -> Wait {
        Wait {
            limit,
            under_way: false,
            passed: 0,
            alarm: Box::pin(sleep(limit)),
        }
    }

    /// Completes if nothing has happened within the limit.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.under_way {
            self.under_way = true;
            self.passed = 0;
            self.set_alarm();
        }
        while self.passed < PARTS_OF_A_WAIT {
            ready!(self.alarm.as_mut().poll(cx));
            self.passed += 1;
            self.set_alarm();
        }
        Poll::Ready(())
    }

    fn set_alarm(&mut self) {
        let next = Instant::now() + self.limit / PARTS_OF_A_WAIT;
        self.alarm.as_mut().reset(next);
    }

    /// Returns the result of an attempt: completed, pending, or timed out.
    fn attempt<T>(
        &mut self,
        cx: &mut Context<'_>,
        done: Poll<io::Result<T>>,
        lifeless: fn(Duration) -> IdleTimeout,
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

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
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
        this.reading.attempt(cx, read, IdleTimeout::Silent)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.writing.attempt(cx, written, IdleTimeout::Stalled)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        this.writing.attempt(cx, flushed, IdleTimeout::Stalled)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let shut = Pin::new(&mut this.stream).poll_shutdown(cx);
        this.writing.attempt(cx, shut, IdleTimeout::Stalled)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const PATIENCE: IdleLimits = IdleLimits {
        first: Duration::from_secs(30),
        silence: Duration::from_secs(3),
        write: Duration::from_secs(10),
    };

    #[tokio::test(start_paused = true)]
    async fn any_byte_is_life_and_silence_is_not() {
        let (ours, mut theirs) = duplex(64);
        let mut ours = TimeoutStream::new(ours, PATIENCE);
        let began = Instant::now();
        let writing = async {
            for pause in [29, 2, 2, 2] {
                sleep(Duration::from_secs(pause)).await;
                theirs.write_all(b"x").await.expect("it is open");
            }
            theirs
        };
        let reading = async {
            for _ in 0..4 {
                ours.read_u8().await.expect("it lives");
            }
            ours.read_u8().await.expect_err("it is silent")
        };
        let (_open, error) = tokio::join!(writing, reading);
        assert_eq!(error.to_string(), "has been silent for 3.0 s");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let silent = IdleTimeout::Silent(PATIENCE.silence);
        assert_eq!(IdleTimeout::of(&error), Some(silent));
        assert_eq!(began.elapsed().as_secs(), 29 + 2 + 2 + 2 + 3);
    }

    /// Reads from a peer that answers 1 s after this reader was stopped for `gap`, if at all. Virtual
    /// time passes in one step, as the system's does while a process is stopped.
    async fn answer_after(gap: Duration, answers: bool) -> io::Result<u8> {
        let (ours, mut theirs) = duplex(64);
        let mut ours = TimeoutStream::new(ours, PATIENCE);
        theirs.write_all(b"x").await?;
        ours.read_u8().await?;
        let answer = async {
            tokio::task::yield_now().await;
            tokio::time::advance(gap).await;
            sleep(Duration::from_secs(1)).await;
            if answers {
                theirs.write_all(b"y").await?;
            }
            io::Result::Ok(theirs)
        };
        let (open, read) = tokio::join!(answer, ours.read_u8());
        drop(open?);
        read
    }

    #[tokio::test(start_paused = true)]
    async fn the_other_end_is_not_blamed_for_a_standstill_of_this_process() {
        for seconds in [2.9, 3.0, 3.2, 3.7, 20.0, 86_400.0] {
            let gap = Duration::from_secs_f64(seconds);
            let answered = answer_after(gap, true).await;
            assert_eq!(answered.expect("it answers"), b'y', "{seconds} s");
            let began = Instant::now();
            answer_after(gap, false).await.expect_err("it is silent");
            let waited = began.elapsed() - gap;
            assert!(waited < PATIENCE.silence, "{waited:?} after {seconds} s");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_accepts_bytes_is_alive_and_one_that_accepts_none_is_not() {
        let (ours, mut theirs) = duplex(10);
        let mut ours = TimeoutStream::new(ours, PATIENCE);
        let take = async {
            for _ in 0..3 {
                sleep(Duration::from_secs(9)).await;
                theirs.read_u8().await.expect("it is open");
            }
            theirs
        };
        let (_open, written) = tokio::join!(take, ours.write_all(&[0; 100]));
        let error = written.expect_err("it is stalled");
        assert_eq!(error.to_string(), "has taken no bytes for 10.0 s");
    }
}
