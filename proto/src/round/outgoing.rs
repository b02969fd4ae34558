//! Outgoing messages: flit by flit, one after the other, or one to each neighbour that has its own
//! port.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use super::{Action, Observer, PendingAction, Round};
use crate::items::{Hops, Message, Packing};
use crate::ops::PeSchedule;
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

/// The outgoing messages.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) flit_bytes: u32,
    /// Flit sizes of the own messages with separate ones.
    packet_bytes: BTreeMap<MessageId, u32>,
    /// Number of flits that are sent at a time.
    pub(super) piece_flits: u64,
    /// Outgoing parts: one, or one for each neighbour that has its own port.
    pub(super) outgoing: SmallVec<[Outgoing; 1]>,
    /// Transmissions in progress, one for each neighbour.
    pub(super) under_way: SmallVec<[PendingAction; 1]>,
    /// Payload bytes sent since the last check for incoming frames.
    pub(super) unlooked_bytes: u64,
    /// For each message of which a part was in `outgoing`: the offset of the first byte that later
    /// parts may send.
    later_from: BTreeMap<MessageId, u64>,
    /// For each own message that uses several ports: the number of bytes from its start that were
    /// sent to any neighbour.
    gone: BTreeMap<MessageId, u64>,
}

impl Sending {
    /// Creates the state of a PE that has sent nothing.
    pub(super) fn new(brief: &PeSchedule) -> Sending {
        let own_ids = brief.sends.iter().map(|message| message.id);
        Sending {
            flit_bytes: brief.flit_bytes,
            packet_bytes: own_ids.zip(brief.packet_bytes.iter().copied()).collect(),
            piece_flits: 1,
            outgoing: SmallVec::new(),
            under_way: SmallVec::new(),
            unlooked_bytes: 0,
            later_from: BTreeMap::new(),
            gone: BTreeMap::new(),
        }
    }

    /// Adds a message, or the part of it that `bytes` delimits.
    #[inline]
    pub(super) fn add(
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

    /// Returns the payload bytes that are sent at a time: of a message, or of most messages.
    #[inline]
    pub(super) fn piece_bytes(&self, message: Option<MessageId>) -> u64 {
        let own = message.and_then(|id| self.packet_bytes.get(&id));
        let flit_bytes = own.copied().unwrap_or(self.flit_bytes);
        self.piece_flits.saturating_mul(flit_bytes.into())
    }

    /// Returns whether a flit to this neighbour is in progress.
    #[inline]
    pub(super) fn is_under_way_to(&self, to: PeId) -> bool {
        let mut all = self.under_way.iter();
        all.any(|given| given.action.sends_to() == Some(to))
    }

    /// Reports that a flit of an own message that ends at byte `end` was sent.
    #[inline]
    pub(super) fn went(&mut self, message: MessageId, end: u64) {
        let gone = self.gone.entry(message).or_default();
        *gone = (*gone).max(end);
    }

    #[inline]
    fn gone_of(&self, message: MessageId) -> u64 {
        self.gone.get(&message).copied().unwrap_or(0)
    }

    /// Returns the offset of the first byte of the same message that is sent from here besides this
    /// part.
    #[inline]
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

    /// Returns the part whose next flit goes to this neighbour.
    #[inline]
    fn slot(&mut self, to: PeId) -> Option<&mut Outgoing> {
        let mut all = self.outgoing.iter_mut();
        all.find(|it| it.to.get(it.turn) == Some(&to))
    }
}

impl<O: Observer> Round<O> {
    /// Returns the next action for the outgoing messages; `None` if there is no message, or the
    /// next flit has not arrived yet or is in progress.
    pub(super) fn poll_outgoing(&mut self) -> Option<Action> {
        (0..self.sending.outgoing.len()).find_map(|place| self.poll_slot(place))
    }

    fn poll_slot(&mut self, place: usize) -> Option<Action> {
        let outgoing = self.sending.outgoing.get(place)?;
        let (message, offset, packing) = (outgoing.message, outgoing.offset, outgoing.packing);
        let left = outgoing.end - offset;
        let bytes = left.min(self.sending.piece_bytes(Some(message.id)));
        // A message of another PE is sent without changes.
        let is_held = message.source != self.pe.id();
        let Some(&to) = outgoing.to.get(outgoing.turn).filter(|_| left > 0) else {
            // If PEs send and receive at the same time, no other frame had to wait.
            let goes_on = self.through(place);
            return (goes_on || !self.is_duplex || self.pe.has_all_ports())
                .then_some(Action::Turn { from: None });
        };
        if self.sending.is_under_way_to(to) {
            return None;
        }
        match outgoing.turn {
            _ if is_held => {
                let here = self.buffers.held.bytes_of(message.id);
                let rest = Some(offset + bytes).filter(|_| bytes < left);
                (offset + bytes <= here).then(|| Action::SendHeld {
                    to,
                    message,
                    offset,
                    bytes,
                    packing,
                    later_from: self.sending.later_from(place).min(rest.unwrap_or(u64::MAX)),
                })
            }
            // The hash covers all preceding bytes, which another port sends.
            0 if self.pe.has_all_ports() && offset > self.sending.gone_of(message.id) => None,
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

    /// Removes a complete outgoing part; returns whether more of its message follows.
    fn through(&mut self, place: usize) -> bool {
        let is_over = self.sending.later_from(place) == u64::MAX;
        let Outgoing { to, message, .. } = self.sending.outgoing.remove(place);
        if is_over {
            self.own_hashes.end(message.id);
        }
        match self.pe.has_all_ports() {
            true => self.pe.handle_sent_to(to[0]),
            false => self.pe.handle_sent(),
        }
        !is_over
    }

    /// Returns whether a part of a message of this PE was sent and more of it follows.
    pub fn goes_on_with(&self, message: MessageId) -> bool {
        self.own_hashes.has_begun(message)
    }

    pub(super) fn sent(&mut self, now: Time, to: PeId, bytes: u64) {
        self.sending.unlooked_bytes += bytes;
        let Some(outgoing) = self.sending.slot(to) else {
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
        let Some(PendingAction {
            action: Action::SendFlit {
                message, offset, ..
            },
            ..
        }) = self.given
        else {
            return;
        };
        self.own_hashes.cover(message.id, offset, payload);
        let is_first = offset == 0;
        let is_last = offset + payload.len() as u64 == message.bytes;
        let digest = is_last.then(|| self.own_hashes.digest());
        let head = is_first.then_some((self.id, message));
        flit::put_prefix(head, digest.as_ref(), payload.len(), out);
        if let Some(due) = self.pe.own_due().filter(|_| is_first) {
            self.observer.started(due, now);
            self.start.own_start = Some(OwnStart {
                due_ns: due.0,
                began_ns: now.0,
            });
        }
    }
}
