//! What a PE waits for on its connections in a round: whose turn it is to be asked.

use std::pin::pin;
use std::task::{Poll, ready};

use flitcast_proto::PeId;
use flitcast_proto::round::{Observer, Round};
use smallvec::SmallVec;

use crate::limits::LOOKS;
use crate::link::LinkError;
use crate::neighbours::Neighbours;
use crate::round::Heard;

/// Whose turns were last, by their places among the neighbours.
#[derive(Debug, Default)]
pub struct LastTurns {
    /// To whom something was sent, and of whom something came.
    sent: usize,
    heard: usize,
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
        let mut partial = 0;
        // Most that is short comes from one after the other.
        let heard = neighbours.ask_around(last.heard, |place, link| {
            // Most are quiet, which is the quickest to see.
            let is_quiet = link.is_quiet(cx);
            if is_quiet && awaited.is_none() || !round.listens_to(link.peer()) {
                return Poll::Pending;
            }
            if !is_quiet && link.poll_frame(cx)?.is_ready() {
                last.heard = place;
                return Poll::Ready(Ok(Heard::Frame(link.peer())));
            }
            partial += link.partial_bytes();
            Poll::Pending
        });
        match awaited.is_some_and(|awaited| partial >= awaited) {
            true if heard.is_pending() => Poll::Ready(Ok(Heard::Arriving(partial))),
            _ => heard,
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
