//! Messages that go out from here: flit by flit, one after the other, or one to each neighbour that
//! has a port of its own.

use super::{Action, Given, Observer, Round};
use crate::items::{Hops, Message};
use crate::spans::Port;
use crate::wire::control::OwnStart;
use crate::wire::flit;
use crate::{MessageId, PeId, Time};

/// A message, or a part of one, that goes out from here, flit by flit.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The neighbours that get it, and which of them has had the flit that goes now.
    to: Hops,
    turn: usize,
    message: Message,
    offset: u64,
    /// Where the part ends.
    end: u64,
    since: Time,
}

impl<O: Observer> Round<O> {
    pub(super) fn send(
        &mut self,
        now: Time,
        to: Hops,
        message: Message,
        bytes: [u64; 2],
        later_from: u64,
    ) {
        let [offset, end] = bytes;
        self.later_from.insert(message.id, later_from);
        self.outgoing.push(Outgoing {
            to,
            turn: 0,
            message,
            offset,
            end,
            since: now,
        });
    }

    /// Whether a message that goes out is one that came, and goes as it did.
    fn is_held(&self, message: &Message) -> bool {
        message.source != self.pe.id()
    }

    /// Payload that is sent at once of a message, or of most.
    pub(super) fn piece_bytes(&self, message: Option<MessageId>) -> u64 {
        let own = message.and_then(|id| self.packet_bytes.get(&id));
        let flit_bytes = own.copied().unwrap_or(self.flit_bytes);
        self.piece_flits.saturating_mul(flit_bytes.into())
    }

    /// The next of what goes out; `None` if there is nothing, or it is yet to come, or on its way.
    pub(super) fn poll_outgoing(&mut self) -> Option<Action> {
        (0..self.outgoing.len()).find_map(|place| self.poll_slot(place))
    }

    fn poll_slot(&mut self, place: usize) -> Option<Action> {
        let outgoing = self.outgoing.get(place)?;
        let (message, offset) = (outgoing.message, outgoing.offset);
        let left = outgoing.end - offset;
        let bytes = left.min(self.piece_bytes(Some(message.id)));
        let is_held = self.is_held(&message);
        let Some(&to) = outgoing.to.get(outgoing.turn).filter(|_| left > 0) else {
            // Where PEs send and receive at once, nobody has had to wait.
            let goes_on = self.through(place);
            return (goes_on || !self.is_duplex || self.pe.has_all_ports())
                .then_some(Action::Turn { from: None });
        };
        if self.is_under_way_to(to) {
            return None;
        }
        match outgoing.turn {
            _ if is_held => {
                let here = self.held.get(&message.id).map_or(0, |[here, _]| *here);
                let rest = Some(offset + bytes).filter(|_| bytes < left);
                (offset + bytes <= here).then(|| Action::SendHeld {
                    to,
                    message,
                    offset,
                    bytes,
                    later_from: self.later_from(place).min(rest.unwrap_or(u64::MAX)),
                })
            }
            // Its hash is one of all that is ahead, which goes by another port.
            0 if self.pe.has_all_ports() && offset > self.gone_of(message.id) => None,
            0 => Some(Action::SendFlit {
                to,
                message,
                offset,
                bytes,
            }),
            _ => Some(Action::SendAgain {
                to,
                message,
                offset,
                bytes,
            }),
        }
    }

    fn gone_of(&self, message: MessageId) -> u64 {
        self.gone.get(&message).copied().unwrap_or(0)
    }

    /// The first byte of the same message that goes from here besides what this part has.
    fn later_from(&self, place: usize) -> u64 {
        let of = self.outgoing[place].message.id;
        let all = self.outgoing.iter().enumerate();
        let others = all.filter(|(at, it)| *at != place && it.message.id == of);
        let others = others.map(|(_, it)| it.offset);
        others
            .chain(self.later_from.get(&of).copied())
            .min()
            .unwrap_or(u64::MAX)
    }

    /// A message that goes out is through, or a part of it; whether more of it is to go.
    fn through(&mut self, place: usize) -> bool {
        let is_over = self.later_from(place) == u64::MAX;
        let Outgoing { to, message, .. } = self.outgoing.remove(place);
        match is_over {
            true if self.hashed == Some(message.id) => self.hashed = None,
            true => drop(self.begun.remove(&message.id)),
            false => {}
        }
        match self.pe.has_all_ports() {
            true => self.pe.handle_sent_to(to[0]),
            false => self.pe.handle_sent(),
        }
        !is_over
    }

    /// Whether a part of a message of this PE has gone, and another one is yet to.
    pub fn goes_on_with(&self, message: MessageId) -> bool {
        self.hashed == Some(message) || self.begun.contains_key(&message)
    }

    /// What goes to this neighbour next.
    fn slot(&mut self, to: PeId) -> Option<&mut Outgoing> {
        let mut all = self.outgoing.iter_mut();
        all.find(|it| it.to.get(it.turn) == Some(&to))
    }

    pub(super) fn sent(&mut self, now: Time, to: PeId, bytes: u64) {
        self.unlooked_bytes += bytes;
        let Some(outgoing) = self.slot(to) else {
            return;
        };
        let message = outgoing.message;
        outgoing.turn += 1;
        let is_over = outgoing.offset + bytes == outgoing.end;
        let since = outgoing.since;
        let is_everywhere = outgoing.turn == outgoing.to.len();
        if is_everywhere {
            outgoing.turn = 0;
            outgoing.offset += bytes;
        }
        if is_over {
            let span = [since, now];
            self.recorder.keep(Port::Send, to, message, span);
        }
        if is_everywhere {
            self.pe.handle_progress(now, bytes);
        }
    }

    /// Appends what goes ahead of the payload of the flit that is to be sent: the length of its
    /// frame included. The payload is hashed.
    pub fn put_prefix(&mut self, now: Time, payload: &[u8], out: &mut Vec<u8>) {
        let Some(Given {
            action: Action::SendFlit {
                message, offset, ..
            },
            ..
        }) = self.given
        else {
            return;
        };
        self.turn_hash_to(message.id);
        // What has gone to somebody else is hashed already.
        if offset == self.hashed_bytes {
            self.sent_hash.update(payload);
            self.hashed_bytes += payload.len() as u64;
        }
        let is_first = offset == 0;
        let is_last = offset + payload.len() as u64 == message.bytes;
        let digest = is_last.then(|| self.sent_hash.digest());
        let head = is_first.then_some((self.id, message));
        flit::put_prefix(head, digest.as_ref(), payload.len(), out);
        if let Some(due) = self.pe.own_due().filter(|_| is_first) {
            self.observer.started(due, now);
            self.own_start = Some(OwnStart {
                due_ns: due.0,
                began_ns: now.0,
            });
        }
    }

    /// The hash of what goes is that of this message.
    fn turn_hash_to(&mut self, message: MessageId) {
        if self.hashed == Some(message) {
            return;
        }
        if let Some(other) = self.hashed.replace(message) {
            let hash = std::mem::take(&mut self.sent_hash);
            self.begun.insert(other, (self.hashed_bytes, hash));
        }
        match self.begun.remove(&message) {
            Some(begun) => (self.hashed_bytes, self.sent_hash) = begun,
            None => {
                self.hashed_bytes = 0;
                self.sent_hash.reset();
            }
        }
    }
}
