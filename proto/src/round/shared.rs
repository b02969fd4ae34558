//! The parts of a round that do not depend on its kind: the state machine, the incoming message and the
//! frame in hand, digests, held messages, arrivals, spans.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::hash::{Hash, OwnHashes};
use super::held::Buffers;
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
    pub(super) arrivals: Arrivals,
    pub(super) buffers: Buffers,
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
        Shared {
            id,
            observer,
            start: Start::default(),
            is_over: false,
            given: None,
            sizes: FlitSizes::new(&schedule),
            receiving: Receiving::default(),
            own_hashes: OwnHashes::default(),
            arrivals: Arrivals::new(&schedule, pe),
            buffers: Buffers::new(schedule.flit_bytes),
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
        self.buffers.held.give_up_to(message, later_from);
        self.count_buffers(0);
    }

    /// Counts the flits of others' messages in memory: those held, and `passing` ones.
    pub(super) fn count_buffers(&mut self, passing: u64) {
        if let Some(flits) = self.buffers.count(passing) {
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

/// The messages for this PE, parts of a message separately.
#[derive(Debug)]
pub(super) struct Arrivals {
    pub(super) all: Vec<Arrival>,
    /// Index in `all` of each message.
    places: BTreeMap<MessageId, usize>,
}

impl Arrivals {
    /// Creates the list of the messages of a PE, of which nothing has arrived.
    pub(super) fn new(schedule: &PeSchedule, pe: PeId) -> Arrivals {
        let all: Vec<Arrival> = schedule
            .receives
            .iter()
            .map(|it| Arrival::of(it, pe))
            .collect();
        let places = all.iter().map(|arrival| arrival.message).zip(0..);
        Arrivals {
            places: places.collect(),
            all,
        }
    }

    /// Returns the progress of a message, or `None` if it is not for this PE.
    #[inline]
    pub(super) fn of(&mut self, message: &Message) -> Option<&mut Arrival> {
        let place = self.places.get(&message.id)?;
        self.all.get_mut(*place)
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
