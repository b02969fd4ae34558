//! The parts of a round that do not depend on its kind: the state machine, the incoming message and the
//! frame in hand, digests, held messages, arrivals, spans.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::hash::{Hash, OwnHashes};
use super::{Action, Observer};
use crate::items::{Message, Route};
use crate::ops::{PeMachine, PeSchedule};
use crate::spans::{Port, Span, SpanItem};
use crate::streams::Streams;
use crate::wire::control::{Arrival, OwnStart};
use crate::wire::flit::Digest;
use crate::{MessageId, PeId, RoundId, Time, Tree};

/// The state of a round, whatever its kind.
#[derive(Debug)]
pub(super) struct Shared<O> {
    pub(super) id: RoundId,
    pub(super) pe: PeMachine,
    pub(super) observer: O,
    pub(super) start: Start,
    pub(super) is_over: bool,
    /// The last action that [`Round::poll`](super::Round::poll) returned.
    pub(super) given: Option<PendingAction>,
    pub(super) sizes: FlitSizes,
    pub(super) receiving: Receiving,
    pub(super) own_hashes: OwnHashes,
    /// The messages for this PE, parts of a message separately.
    pub(super) arrivals: BTreeMap<MessageId, Arrival>,
    pub(super) held: Held,
    pub(super) late_frames: u64,
    pub(super) recorder: Recorder,
    pub(super) streams: Streams,
}

/// The beginning of the round at this PE.
#[derive(Debug, Default)]
pub(super) struct Start {
    has_begun: bool,
    /// The time of the trigger, and when the first action after that was polled.
    pub(super) begins_at: Option<Time>,
    pub(super) began_at: Option<Time>,
    pub(super) own_start: Option<OwnStart>,
}

/// An action, and the time when [`Round::poll`](super::Round::poll) first returned it.
#[derive(Debug)]
pub(super) struct PendingAction {
    pub(super) action: Action,
    pub(super) since: Time,
    /// Whether it goes between two flits and leaves the port to their message.
    pub(super) interjected: bool,
}

impl<O: Observer> Shared<O> {
    pub(super) fn new(
        id: RoundId,
        tree: Arc<Tree>,
        pe: PeId,
        schedule: PeSchedule,
        observer: O,
    ) -> Shared<O> {
        let receives = schedule.receives.iter();
        let arrivals = receives.map(|message| (message.id, Arrival::of(message, pe)));
        Shared {
            id,
            observer,
            start: Start::default(),
            is_over: false,
            given: None,
            sizes: FlitSizes::new(&schedule),
            receiving: Receiving::default(),
            own_hashes: OwnHashes::default(),
            arrivals: arrivals.collect(),
            held: Held::new(schedule.flit_bytes),
            pe: PeMachine::new(tree, pe, schedule),
            late_frames: 0,
            recorder: Recorder::new(0),
            streams: Streams::default(),
        }
    }

    /// Reports the first event of the round.
    pub(super) fn begin(&mut self) {
        if !std::mem::replace(&mut self.start.has_begun, true) {
            self.observer.begun();
        }
    }

    /// Forgets the bytes of a held message before `later_from`, after a flit of it was sent.
    pub(super) fn sent_held(&mut self, message: MessageId, later_from: u64) {
        self.held.give_up_to(message, later_from);
        self.count_buffers(0);
    }

    /// Counts the flits of others' messages in memory: those held, and `passing` ones.
    pub(super) fn count_buffers(&mut self, passing: u64) {
        if let Some(flits) = self.held.count(passing) {
            self.observer.holds(flits);
        }
    }
}

/// The sizes of outgoing flits.
#[derive(Debug)]
pub(super) struct FlitSizes {
    pub(super) flit_bytes: u32,
    /// Flit sizes of the own messages with separate ones.
    packet_bytes: BTreeMap<MessageId, u32>,
    /// Number of flits that are sent at a time.
    pub(super) piece_flits: u64,
}

impl FlitSizes {
    pub(super) fn new(schedule: &PeSchedule) -> FlitSizes {
        let own_ids = schedule.sends.iter().map(|message| message.id);
        FlitSizes {
            flit_bytes: schedule.flit_bytes,
            packet_bytes: own_ids.zip(schedule.packet_bytes.iter().copied()).collect(),
            piece_flits: 1,
        }
    }

    /// Returns the payload bytes that are sent at a time: of a message, or of most messages.
    #[inline]
    pub(super) fn piece_bytes(&self, message: Option<MessageId>) -> u64 {
        let own = message.and_then(|id| self.packet_bytes.get(&id));
        let flit_bytes = own.copied().unwrap_or(self.flit_bytes);
        self.piece_flits.saturating_mul(flit_bytes.into())
    }
}

/// A message that arrives.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) from: PeId,
    pub(super) message: Message,
    /// The route, or `None` for a message of an earlier round, which is dropped.
    pub(super) route: Option<Route>,
    /// Bytes that are yet to arrive, and how many of them come later, in another part.
    pub(super) left: u64,
    pub(super) later: u64,
    /// Whether its payload is hashed: it ends here, and there is payload.
    pub(super) is_hashed: bool,
    /// The digest in the last flit.
    pub(super) digest: Option<Digest>,
    /// Whether the commit of the verified message was requested.
    pub(super) is_committed: bool,
    /// When its first flit was here, and when the first flit was forwarded.
    pub(super) since: Time,
    pub(super) relayed: Option<Time>,
}

impl Incoming {
    /// Returns whether the message belongs to this round.
    #[inline]
    pub(super) fn counts(&self) -> bool {
        self.route.is_some()
    }

    /// Returns whether more of the present part is yet to arrive.
    pub(super) fn has_part_left(&self) -> bool {
        self.left > self.later
    }

    pub(super) fn ends_here(&self) -> bool {
        self.route.as_ref().is_some_and(|route| route.deliver)
    }
}

/// The last received frame.
#[derive(Debug)]
pub(super) struct InHand {
    pub(super) from: PeId,
    /// The range of its payload; empty if it is not a flit of this round.
    pub(super) payload: Range<usize>,
    /// Number of actions done with it.
    pub(super) done: usize,
}

/// The message and the frame that the PE receives.
#[derive(Debug, Default)]
pub(super) struct Receiving {
    pub(super) incoming: Option<Incoming>,
    /// Hash of the payload of `incoming` so far.
    pub(super) hash: Hash,
    /// The last received frame, while actions on it are left.
    pub(super) in_hand: Option<InHand>,
}

impl Receiving {
    /// Returns whether a message of this round is incomplete.
    pub(super) fn is_in_message(&self) -> bool {
        self.incoming.as_ref().is_some_and(Incoming::counts)
    }

    /// Puts a frame in hand, with the range of its payload.
    #[inline]
    pub(super) fn take(&mut self, from: PeId, payload: Range<usize>) {
        self.in_hand = Some(InHand {
            from,
            payload,
            done: 0,
        });
    }

    /// Counts an action on the frame in hand; returns the bytes of its payload.
    pub(super) fn has_done(&mut self) -> u64 {
        self.in_hand.as_mut().map_or(0, |in_hand| {
            in_hand.done += 1;
            in_hand.payload.len() as u64
        })
    }
}

/// The spans of one PE in one round, up to a maximum number.
#[derive(Debug)]
pub(super) struct Recorder {
    spans: Vec<Span>,
    most: usize,
}

impl Recorder {
    pub(super) fn new(most: usize) -> Recorder {
        let spans = Vec::new();
        Recorder { spans, most }
    }

    #[inline]
    pub(super) fn keep(
        &mut self,
        port: Port,
        peer: PeId,
        item: impl Into<SpanItem>,
        [begin, end]: [Time; 2],
    ) {
        if self.spans.len() < self.most {
            self.spans.push(Span {
                port,
                peer,
                item: item.into(),
                begin_ns: begin.0,
                end_ns: end.0,
            });
        }
    }

    pub(super) fn take(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }
}

/// The messages that a PE holds, and how many flits of them are in memory.
#[derive(Debug)]
pub(super) struct Held {
    flit_bytes: u64,
    /// For each message, the number of bytes that have arrived, and how many of them are not needed
    /// any more.
    messages: BTreeMap<MessageId, [u64; 2]>,
    /// The sum over all messages.
    flits: u64,
    /// Flits of other PEs' messages in memory when they were last counted, and their maximum so far.
    in_memory: u64,
    pub(super) peak_flits: u64,
}

impl Held {
    pub(super) fn new(flit_bytes: u32) -> Held {
        Held {
            flit_bytes: flit_bytes.into(),
            messages: BTreeMap::new(),
            flits: 0,
            in_memory: 0,
            peak_flits: 0,
        }
    }

    fn change(&mut self, message: MessageId, change: impl FnOnce(&mut [u64; 2])) {
        let held = self.messages.entry(message).or_default();
        let flits =
            |[here, released]: [u64; 2]| here.saturating_sub(released).div_ceil(self.flit_bytes);
        let before = flits(*held);
        change(held);
        self.flits = self.flits + flits(*held) - before;
    }

    /// Resets a message, which begins to arrive.
    pub(super) fn begin(&mut self, message: MessageId) {
        self.change(message, |held| *held = [0, 0]);
    }

    /// Adds bytes of a message that have arrived.
    pub(super) fn add(&mut self, message: MessageId, bytes: u64) {
        self.change(message, |[here, _]| *here += bytes);
    }

    /// Marks the bytes of a message before `end` as not needed any more.
    pub(super) fn give_up_to(&mut self, message: MessageId, end: u64) {
        self.change(message, |[_, released]| *released = end.max(*released));
    }

    /// Returns the number of flits that have arrived and are still needed.
    pub(super) fn flits(&self) -> u64 {
        self.flits
    }

    /// Returns the number of bytes of a message that have arrived.
    pub(super) fn bytes_of(&self, message: MessageId) -> u64 {
        self.messages.get(&message).map_or(0, |[here, _]| *here)
    }

    /// Counts the flits of held messages and `passing` ones; returns their number if it changed.
    pub(super) fn count(&mut self, passing: u64) -> Option<u64> {
        let flits = self.flits + passing;
        self.peak_flits = self.peak_flits.max(flits);
        (std::mem::replace(&mut self.in_memory, flits) != flits).then_some(flits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum equals that of the messages at any time, each in whole flits.
    #[test]
    fn the_flits_in_memory_are_those_that_have_arrived_and_are_needed() {
        let mut random = crate::seeded::SplitMix64::new(34);
        let mut held = Held::new(10);
        for _ in 0..2000 {
            let message = MessageId(random.below(5));
            match random.below(9) {
                0 => held.begin(message),
                1..5 => held.add(message, random.below(25)),
                _ => held.give_up_to(message, random.below(40) + held.bytes_of(message) / 2),
            }
            let flits = held.messages.values().map(|[here, released]| {
                let bytes = here.saturating_sub(*released);
                bytes.div_ceil(10)
            });
            assert_eq!(held.flits, flits.sum::<u64>());
        }
        assert!(held.flits > 0);
    }
}
