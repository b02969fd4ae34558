//! What a PE waits for on its connections in a round: whose turn it is to be asked.

use std::task::{Poll, ready};

use flitcast_proto::PeId;
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
    /// Who had nothing. Sockets are looked at while the task waits or yields, so there is nothing before
    /// that.
    dry: SmallVec<[bool; 16]>,
}

impl LastTurns {
    /// The task has yielded: whoever had nothing may have something.
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
                if last.dry[place] || !round.listens_to(link.peer()) {
                    were_left_out |= last.dry[place];
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
