//! What a PE waits for on its connections in a round: whose turn it is to be asked.

use std::pin::pin;
use std::task::{Poll, ready};

use flitcast_proto::PeId;
use flitcast_proto::ops::LOOKS;
use flitcast_proto::round::{Observer, Round};
use smallvec::SmallVec;

use crate::link::LinkError;
use crate::neighbours::Neighbours;
use crate::round::Heard;

/// Whose turns were last, by their places among the neighbours.
#[derive(Debug, Default)]
pub struct LastTurns {
    /// To whom something was sent, and of whom something came.
    sent: usize,
    heard: usize,
    /// Who had nothing, and is asked again when nobody else has anything. Over shaped links whoever is
    /// asked when its frame lands gets the port, and those go first that have not waited yet.
    dry: SmallVec<[bool; 16]>,
}

impl LastTurns {
    /// Whoever had nothing may have something: the task has yielded.
    pub fn ask_all_again(&mut self) {
        self.dry.fill(false);
    }
}

/// Waits until a neighbour that the round listens to has a frame, or what is under way has gone.
pub async fn moved(
    round: &Round<impl Observer>,
    neighbours: &mut Neighbours,
    sending: &mut SmallVec<[PeId; 1]>,
    last: &mut LastTurns,
) -> Result<Heard, LinkError> {
    let only = round.awaits_rest_from().filter(|_| !round.is_duplex());
    if let Some(from) = only {
        neighbours.get(from).next_frame().await?;
        return Ok(Heard::Frame(from));
    }
    let awaited = round.awaits_bytes();
    std::future::poll_fn(|cx| {
        // Of several that wait for a port of all, whoever is asked first gets it: they take turns.
        let sent = neighbours.ask_around(last.sent, |place, link| {
            ready!(link.poll_sent(cx))?;
            let peer = link.peer();
            match sending.iter().position(|to| *to == peer) {
                Some(at) => {
                    sending.swap_remove(at);
                    last.sent = place;
                    Poll::Ready(Ok(Heard::Through(peer)))
                }
                None => Poll::Pending,
            }
        });
        if sent.is_ready() {
            return sent;
        }
        loop {
            let (mut partial, mut were_left_out) = (0, false);
            // Most that is short comes from one after the other.
            let heard = neighbours.ask_around(last.heard, |place, link| {
                if last.dry.len() <= place {
                    last.dry.resize(place + 1, false);
                }
                were_left_out |= last.dry[place];
                // Most are quiet, which is the quickest to see.
                let is_quiet = link.is_quiet(cx);
                if last.dry[place]
                    || is_quiet && awaited.is_none()
                    || !round.listens_to(link.peer())
                {
                    return Poll::Pending;
                }
                if link.poll_frame(cx)?.is_ready() {
                    last.heard = place;
                    return Poll::Ready(Ok(Heard::Frame(link.peer())));
                }
                last.dry[place] = true;
                partial += link.partial_bytes();
                Poll::Pending
            });
            if heard.is_ready() {
                return heard;
            }
            last.ask_all_again();
            if !were_left_out {
                return match awaited.is_some_and(|awaited| partial >= awaited) {
                    true => Poll::Ready(Ok(Heard::Arriving(partial))),
                    false => Poll::Pending,
                };
            }
        }
    })
    .await
}

/// The same, if it comes about while the PE looks a few times and lets others go on in between.
pub async fn moved_soon(
    round: &Round<impl Observer>,
    neighbours: &mut Neighbours,
    sending: &mut SmallVec<[PeId; 1]>,
    last: &mut LastTurns,
) -> Option<Result<Heard, LinkError>> {
    for _ in 0..LOOKS {
        let mut moved = pin!(moved(round, neighbours, sending, last));
        let looked = std::future::poll_fn(|cx| Poll::Ready(moved.as_mut().poll(cx))).await;
        if let Poll::Ready(heard) = looked {
            return Some(heard);
        }
        std::thread::yield_now();
        tokio::task::yield_now().await;
    }
    None
}
