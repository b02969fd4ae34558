//! The wait for events on a PE's connections in a round, with fair turns for all neighbours.

use std::pin::pin;
use std::task::{Poll, ready};

use flitcast_proto::ops::POLL_ATTEMPTS;
use flitcast_proto::round::{Observer, Round};
use flitcast_proto::{PeId, Time};
use smallvec::SmallVec;

use crate::limits::{LONG_YIELD, LONGEST_SLICE_NS, ROUNDS_OF_A_LONG_YIELD};
use crate::link::LinkError;
use crate::neighbours::Neighbours;
use crate::round::RoundEvent;
use crate::system::clock;

/// The yields of a PE that polls, by which it gives its core to other processes for a while.
#[derive(Debug, Default)]
pub struct Yields {
    /// Number of rounds until all long yields are forgotten.
    long: u32,
}

impl Yields {
    /// Yields the core, unless that took long in several of the last rounds: another program is busy
    /// there, and a PE that sleeps instead gets the core as soon as it wakes up.
    pub fn yield_core(&mut self) {
        if self.are_short() {
            let began = clock::now();
            std::thread::yield_now();
            self.record(clock::now().0 - began.0);
        }
    }

    /// Records a yield of this many nanoseconds.
    fn record(&mut self, ns: u64) {
        if u128::from(ns) > LONG_YIELD.as_nanos() {
            self.long += ROUNDS_OF_A_LONG_YIELD;
        }
    }

    /// Returns whether at most two of the last yields were long.
    pub fn are_short(&self) -> bool {
        self.long <= 2 * ROUNDS_OF_A_LONG_YIELD
    }

    pub fn next_round(&mut self) {
        self.long = self.long.saturating_sub(1);
    }
}

/// Round-robin positions: the indices of the neighbours served last.
#[derive(Debug, Default)]
pub struct PollCursor {
    /// The neighbours served last by the send port and by the receive port.
    sent: usize,
    received: usize,
    /// Neighbours that had no frame; they are polled again when no other neighbour has one. On
    /// shaped links the neighbour that is polled when its frame arrives gets the port, so those
    /// that have not waited yet are polled first.
    had_no_frame: SmallVec<[bool; 16]>,
}

impl PollCursor {
    /// Lets all neighbours be polled again, because the task has yielded.
    pub fn poll_all_again(&mut self) {
        self.had_no_frame.fill(false);
    }
}

/// Waits until a neighbour that the round listens to has a frame, or a transmission in progress is
/// complete.
pub async fn next_event(
    round: &Round<impl Observer>,
    neighbours: &mut Neighbours,
    sending: &mut SmallVec<[PeId; 1]>,
    last: &mut PollCursor,
) -> Result<RoundEvent, LinkError> {
    let only = round.listens_only_to();
    if let Some(from) = only {
        neighbours.get(from).next_frame().await?;
        return Ok(RoundEvent::Frame(from));
    }
    let awaited = round.awaits_bytes();
    std::future::poll_fn(|cx| {
        // Neighbours that wait for a shared port are polled in turn.
        let sent = neighbours.poll_round_robin(last.sent, |place, link| {
            ready!(link.poll_sent(cx))?;
            let peer = link.peer();
            match sending.iter().position(|to| *to == peer) {
                Some(at) => {
                    sending.swap_remove(at);
                    last.sent = place;
                    Poll::Ready(Ok(RoundEvent::Through(peer)))
                }
                None => Poll::Pending,
            }
        });
        if sent.is_ready() {
            return sent;
        }
        loop {
            let (mut partial, mut were_left_out) = (0, false);
            // Most short messages arrive from one neighbour after the other.
            let received = neighbours.poll_round_robin(last.received, |place, link| {
                if last.had_no_frame.len() <= place {
                    last.had_no_frame.resize(place + 1, false);
                }
                were_left_out |= last.had_no_frame[place];
                // Most connections are idle, which is the fastest check.
                let is_quiet = link.is_quiet(cx);
                if last.had_no_frame[place]
                    || is_quiet && awaited.is_none()
                    || !round.listens_to(link.peer())
                {
                    return Poll::Pending;
                }
                if link.poll_frame(cx)?.is_ready() {
                    last.received = place;
                    return Poll::Ready(Ok(RoundEvent::Frame(link.peer())));
                }
                last.had_no_frame[place] = true;
                partial += link.partial_bytes();
                Poll::Pending
            });
            if received.is_ready() {
                return received;
            }
            last.poll_all_again();
            if !were_left_out {
                return match awaited.is_some_and(|awaited| partial >= awaited) {
                    true => Poll::Ready(Ok(RoundEvent::Arriving(partial))),
                    false => Poll::Pending,
                };
            }
        }
    })
    .await
}

/// Polls [`next_event`], up to [`POLL_ATTEMPTS`] times or until a time, and yields in between; returns
/// `None` if nothing happened, or if yields are long.
pub async fn poll_for_event(
    round: &Round<impl Observer>,
    neighbours: &mut Neighbours,
    sending: &mut SmallVec<[PeId; 1]>,
    last: &mut PollCursor,
    yields: &mut Yields,
    until: Option<Time>,
) -> Option<Result<RoundEvent, LinkError>> {
    let mut attempts = 0;
    while yields.are_short() && (until.is_some() || attempts < POLL_ATTEMPTS) {
        let mut next_event = pin!(next_event(round, neighbours, sending, last));
        let looked = std::future::poll_fn(|cx| Poll::Ready(next_event.as_mut().poll(cx))).await;
        if let Poll::Ready(event) = looked {
            return Some(event);
        }
        if until.is_some_and(|until| clock::now() >= until) {
            return Some(Ok(RoundEvent::Due));
        }
        attempts += 1;
        yields.yield_core();
        tokio::task::yield_now().await;
    }
    None
}

/// The current uninterrupted work of a task. A task whose connections are always ready may make a hundred
/// system calls before the runtime interrupts it; where others use the processor, too, those take seconds.
#[derive(Debug, Default)]
pub struct WorkSlice {
    began: Time,
}

impl WorkSlice {
    /// Lets the other tasks run if the task has worked for long at `now`.
    pub async fn end_if_long(&mut self, now: Time) {
        if now.0.saturating_sub(self.began.0) >= LONGEST_SLICE_NS {
            tokio::task::yield_now().await;
            self.began = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// One long yield may have many causes; several in few rounds are a busy program's.
    #[test]
    fn after_several_long_yields_a_pe_does_not_yield_for_some_rounds() {
        let [short, long] = [1, 2].map(|times| LONG_YIELD.as_nanos() as u64 * times);
        let mut yields = Yields::default();
        for _ in 0..100 {
            yields.record(short);
            yields.record(long);
            assert!(yields.are_short());
            (0..ROUNDS_OF_A_LONG_YIELD).for_each(|_| yields.next_round());
        }
        (0..3).for_each(|_| yields.record(long));
        let rounds = (0..).find(|_| {
            yields.next_round();
            yields.are_short()
        });
        assert_eq!(rounds, Some(ROUNDS_OF_A_LONG_YIELD - 1));
    }

    /// On one thread, another task runs at the beginning and once per slice.
    #[tokio::test(flavor = "current_thread")]
    async fn other_tasks_run_while_a_task_is_busy() {
        const ACTIONS: u64 = 10;
        let (others, is_over) = (Cell::new(0), Cell::new(false));
        let other = async {
            while !is_over.get() {
                others.set(others.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        let busy = async {
            let mut slice = WorkSlice::default();
            for action in 1..=100 * ACTIONS {
                slice
                    .end_if_long(Time(action * LONGEST_SLICE_NS / ACTIONS))
                    .await;
            }
            is_over.set(true);
        };
        tokio::join!(other, busy);
        assert_eq!(others.get(), 101);
    }
}
