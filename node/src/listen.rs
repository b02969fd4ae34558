//! The wait for events on a PE's connections in a round, with fair turns for all neighbours.

use std::pin::pin;
use std::task::{Poll, ready};

use flitcast_proto::ops::SPIN_ATTEMPTS;
use flitcast_proto::round::{Observer, Round};
use flitcast_proto::{PeId, Time};
use smallvec::SmallVec;

use crate::limits::{LONG_YIELD, ROUNDS_OF_A_LONG_YIELD};
use crate::link::LinkError;
use crate::neighbours::Neighbours;
use crate::round::RoundEvent;
use crate::system::clock;

/// The core of a PE, which it lends to other processes while it polls.
#[derive(Debug, Default)]
pub struct Core {
    /// Rounds that it takes to forget the yields after which another process kept the core for long.
    contested: u32,
}

impl Core {
    /// Lets other processes run. Does nothing if some of them have kept the core for long in the last
    /// rounds: a PE that sleeps gets it back as soon as it wakes up.
    pub fn lend(&mut self) {
        if self.is_lent() {
            let began = clock::now();
            std::thread::yield_now();
            self.was_away(clock::now().0 - began.0);
        }
    }

    /// Remembers a yield of this many nanoseconds, if it was long.
    fn was_away(&mut self, ns: u64) {
        if u128::from(ns) > LONG_YIELD.as_nanos() {
            self.contested += ROUNDS_OF_A_LONG_YIELD;
        }
    }

    /// Returns whether polling makes sense.
    pub fn is_lent(&self) -> bool {
        self.contested <= 2 * ROUNDS_OF_A_LONG_YIELD
    }

    /// Forgets a part of the past, once a round.
    pub fn next_round(&mut self) {
        self.contested = self.contested.saturating_sub(1);
    }
}

/// Round-robin positions: the indices of the neighbours served last.
#[derive(Debug, Default)]
pub struct PollCursor {
    /// The neighbours served last by the send port and by the receive port.
    sent: usize,
    heard: usize,
    /// Neighbours that had no frame; they are polled again when no other neighbour has one. On
    /// shaped links the neighbour that is polled when its frame arrives gets the port, so those
    /// that have not waited yet are polled first.
    had_no_frame: SmallVec<[bool; 16]>,
}

impl PollCursor {
    /// Lets all neighbours be polled again, because the task has yielded.
    pub fn ask_all_again(&mut self) {
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
            let heard = neighbours.poll_round_robin(last.heard, |place, link| {
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
                    last.heard = place;
                    return Poll::Ready(Ok(RoundEvent::Frame(link.peer())));
                }
                last.had_no_frame[place] = true;
                partial += link.partial_bytes();
                Poll::Pending
            });
            if heard.is_ready() {
                return heard;
            }
            last.ask_all_again();
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

/// Polls [`next_event`], up to [`SPIN_ATTEMPTS`] times or until a time, and lends the core in between;
/// returns `None` if nothing happened, or if the core is not given back soon.
pub async fn spin_for_event(
    round: &Round<impl Observer>,
    neighbours: &mut Neighbours,
    sending: &mut SmallVec<[PeId; 1]>,
    last: &mut PollCursor,
    core: &mut Core,
    until: Option<Time>,
) -> Option<Result<RoundEvent, LinkError>> {
    let mut attempts = 0;
    while core.is_lent() && (until.is_some() || attempts < SPIN_ATTEMPTS) {
        let mut next_event = pin!(next_event(round, neighbours, sending, last));
        let looked = std::future::poll_fn(|cx| Poll::Ready(next_event.as_mut().poll(cx))).await;
        if let Poll::Ready(heard) = looked {
            return Some(heard);
        }
        if until.is_some_and(|until| clock::now() >= until) {
            return Some(Ok(RoundEvent::Due));
        }
        attempts += 1;
        core.lend();
        tokio::task::yield_now().await;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One long yield may have many causes; several in few rounds are a busy program's.
    #[test]
    fn a_core_that_is_kept_for_long_again_and_again_is_not_lent_for_some_rounds() {
        let [short, long] = [1, 2].map(|times| LONG_YIELD.as_nanos() as u64 * times);
        let mut core = Core::default();
        for _ in 0..100 {
            core.was_away(short);
            core.was_away(long);
            assert!(core.is_lent());
            (0..ROUNDS_OF_A_LONG_YIELD).for_each(|_| core.next_round());
        }
        (0..3).for_each(|_| core.was_away(long));
        let rounds = (0..).find(|_| {
            core.next_round();
            core.is_lent()
        });
        assert_eq!(rounds, Some(ROUNDS_OF_A_LONG_YIELD - 1));
    }
}
