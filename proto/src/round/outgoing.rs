//! Outgoing messages: flit by flit, one after the other, or one to each neighbour that has its own
//! port.

use super::{Action, Given, Observer, Round};
use crate::items::{Hops, Message, Packing};
use crate::spans::Port;
use crate::wire::control::OwnStart;
use crate::wire::flit;
use crate::{MessageId, PeId, Time};

/// An outgoing message, or a part of one.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The receiving neighbours, and the index of the next one for the current flit.
    to: Hops,
    turn: usize,
    message: Message,
    offset: u64,
    end: u64,
    /// The packets of the flits that are left.
    packing: Packing,
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
        packing: Packing,
    ) {
        let [offset, end] = bytes;
        self.later_from.insert(message.id, later_from);
        self.outgoing.push(Outgoing {
            to,
            turn: 0,
            message,
            offset,
            end,
            packing,
            since: now,
        });
    }

    /// Returns whether an outgoing message came from another PE and is sent without changes.
    fn is_held(&self, message: &Message) -> bool {
        message.source != self.pe.id()
    }

    /// Returns the payload bytes that are sent at a time: of a message, or of most messages.
    pub(super) fn piece_bytes(&self, message: Option<MessageId>) -> u64 {
        let own = message.and_then(|id| self.packet_bytes.get(&id));
        let flit_bytes = own.copied().unwrap_or(self.flit_bytes);
        self.piece_flits.saturating_mul(flit_bytes.into())
    }

    /// Returns the next action for the outgoing messages; `None` if there is no message, or the
    /// next flit has not arrived yet or is in progress.
    pub(super) fn poll_outgoing(&mut self) -> Option<Action> {
        (0..self.outgoing.len()).find_map(|place| self.poll_slot(place))
    }

    fn poll_slot(&mut self, place: usize) -> Option<Action> {
        let outgoing = self.outgoing.get(place)?;
        let (message, offset, packing) = (outgoing.message, outgoing.offset, outgoing.packing);
        let left = outgoing.end - offset;
        let bytes = left.min(self.piece_bytes(Some(message.id)));
        let is_held = self.is_held(&message);
        let Some(&to) = outgoing.to.get(outgoing.turn).filter(|_| left > 0) else {
            // If PEs send and receive at the same time, no other frame had to wait.
            let goes_on = self.through(place);
            return (goes_on || !self.is_duplex || self.pe.has_all_ports())
                .then_some(Action::Turn { from: None });
        };
        if self.is_under_way_to(to) {
            return None;
        }
        match outgoing.turn {
            _ if is_held => {
                let here = self.held.bytes_of(message.id);
                let rest = Some(offset + bytes).filter(|_| bytes < left);
                (offset + bytes <= here).then(|| Action::SendHeld {
                    to,
                    message,
                    offset,
                    bytes,
                    packing,
                    later_from: self.later_from(place).min(rest.unwrap_or(u64::MAX)),
                })
            }
            // The hash covers all preceding bytes, which another port sends.
            0 if self.pe.has_all_ports() && offset > self.gone_of(message.id) => None,
            0 => Some(Action::SendFlit {
                to,
                message,
                offset,
                bytes,
                packing,
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

    /// Returns the offset of the first byte of the same message that is sent from here besides this
    /// part.
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

    /// Removes a complete outgoing part; returns whether more of its message follows.
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

    /// Returns whether a part of a message of this PE was sent and more of it follows.
    pub fn goes_on_with(&self, message: MessageId) -> bool {
        self.hashed == Some(message) || self.begun.contains_key(&message)
    }

    /// Returns the part whose next flit goes to this neighbour.
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
            outgoing.packing = outgoing.packing.rest();
        }
        if is_over {
            let span = [since, now];
            self.recorder.keep(Port::Send, to, message, span);
        }
        if is_everywhere {
            self.pe.handle_progress(now, bytes);
        }
    }

    /// Appends the bytes before the payload of the flit to be sent, including the length of its
    /// frame, and hashes the payload.
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
        // The hash already covers payload that went to another neighbour.
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

    /// Switches the hash of sent payload to this message.
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
