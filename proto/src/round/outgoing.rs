//! An outgoing message, flit by flit.

use std::ops::ControlFlow;

use smallvec::smallvec;

use super::shared::Shared;
use super::{Action, Observer, Piece};
use crate::items::{Hops, Message, Packing, Transmit};
use crate::spans::Port;
use crate::{PeId, Time};

/// An outgoing message, or a part of one.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The receiving neighbours, and the index of the next one for the current flit.
    pub(super) to: Hops,
    pub(super) turn: usize,
    pub(super) message: Message,
    pub(super) offset: u64,
    pub(super) end: u64,
    /// Offset of the first byte that later parts of the message may send.
    pub(super) later_from: u64,
    /// The packets of the flits that are left.
    pub(super) packing: Packing,
    pub(super) since: Time,
}

impl Outgoing {
    /// Returns the receiver of the next flit, or `None` if all flits were sent.
    pub(super) fn next_receiver(&self) -> Option<PeId> {
        let is_left = self.offset < self.end;
        self.to.get(self.turn).copied().filter(|_| is_left)
    }

    /// Returns the action that sends the next flit; `None` if the flit has not arrived yet.
    /// `later_from` is the offset from which other sends need the message.
    pub(super) fn next_flit<O>(
        &self,
        shared: &Shared<O>,
        to: PeId,
        later_from: u64,
    ) -> Option<Action> {
        let (message, offset, packing) = (self.message, self.offset, self.packing);
        let left = self.end - offset;
        let bytes = left.min(shared.sizes.piece_bytes(Some(message.id)));
        let piece = Piece {
            message,
            offset,
            bytes,
        };
        // A message of another PE is sent without changes.
        if message.source != shared.pe.id() {
            let here = shared.held.bytes_of(message.id);
            let rest = if bytes < left {
                offset + bytes
            } else {
                u64::MAX
            };
            return (offset + bytes <= here).then(|| Action::SendHeld {
                to,
                piece,
                packing,
                later_from: later_from.min(rest),
            });
        }
        Some(match self.turn {
            0 => Action::SendFlit { to, piece, packing },
            _ => Action::SendAgain { to, piece },
        })
    }
}

impl<O: Observer> Shared<O> {
    /// Returns the message, or the part of one, that the state machine sends next, or else another
    /// action.
    pub(super) fn poll_transmit(&mut self, now: Time) -> ControlFlow<Action, Outgoing> {
        let (to, message, [offset, end], later_from, packing) = match self.pe.poll_transmit(now) {
            Some(Transmit::Control { to, item }) => {
                return ControlFlow::Break(Action::SendControl { to, item });
            }
            Some(Transmit::Message { to, message }) => {
                let bytes = [0, message.bytes];
                (to, message, bytes, u64::MAX, Packing::Flits)
            }
            Some(Transmit::Part {
                to,
                message,
                bytes,
                later_from,
                packing,
            }) => (smallvec![to], message, bytes, later_from, packing),
            None if self.pe.is_finished() => {
                if !std::mem::replace(&mut self.is_over, true) {
                    self.observer.finished();
                }
                return ControlFlow::Break(Action::Finished);
            }
            None => {
                let until = self.pe.poll_timeout();
                return ControlFlow::Break(Action::Wait { until });
            }
        };
        ControlFlow::Continue(Outgoing {
            to,
            turn: 0,
            message,
            offset,
            end,
            later_from,
            packing,
            since: now,
        })
    }

    /// Counts a flit of an outgoing message that was sent to the next receiver.
    pub(super) fn sent(&mut self, now: Time, outgoing: &mut Outgoing, bytes: u64) {
        let is_last = outgoing.offset + bytes == outgoing.end;
        if let Some(&to) = outgoing.to.get(outgoing.turn).filter(|_| is_last) {
            let span = [outgoing.since, now];
            self.recorder.keep(Port::Send, to, outgoing.message, span);
        }
        outgoing.turn += 1;
        if outgoing.turn == outgoing.to.len() {
            outgoing.turn = 0;
            outgoing.offset += bytes;
            outgoing.packing = outgoing.packing.rest();
            self.pe.handle_progress(now, bytes);
        }
    }
}
