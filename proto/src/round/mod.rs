//! One PE's part of one round, without I/O: the only driver there is.
//!
//! Whoever has bytes to move asks [`Round::poll`] what to do, does it, says so with
//! [`Round::handle_done`], and hands over what comes ([`Round::handle_frame`]). The node does
//! that on sockets and files, the storm on a network that it makes up, the prediction with what
//! each action costs. What a frame means, where it goes, which ones are late, what is verified
//! and what goes between two flits, is decided here for all three, and who sends what when by the
//! state machine below ([`Pe`]).
//!
//! Payload is never copied for it: a frame stays where its driver has read it, and is spoken of
//! as the frame in hand until [`Action::Drop`]. One thing at a time: an item goes out whole, a
//! message comes in whole, before the next is looked at. What overlaps, overlaps in the buffers
//! of the network.
//!
//! Where everybody sends to everybody, two who only send would wait for each other for ever. So
//! in such an operation a PE sends and receives at once, one message each way: what a connection
//! does not take is under way ([`Round::handle_under_way`]) while the round goes on with what
//! comes, and messages may go and come in parts. Where receivers call their senders, several
//! neighbours' messages come at once, flit by flit.
//!
//! ```
//! # use std::sync::Arc;
//! # use flitcast_proto::ops::Brief;
//! # use flitcast_proto::round::{Action, Round};
//! # use flitcast_proto::schedule::pace::Timing;
//! # use flitcast_proto::{PeId, RoundId, Time, Tree};
//! // P0 scatters 5 bytes to P1, in flits of at most 4.
//! let tree = Arc::new(Tree::from_parents(vec![None, Some(PeId(0))]).unwrap());
//! let operation = flitcast_proto::ops::Operation::Scatter;
//! let mut briefs = Brief::all(&tree, operation, &[0, 5], &Timing::LOCK_STEP);
//! briefs[0].flit_bytes = 4;
//! let mut round = Round::new(RoundId(1), tree, PeId(0), briefs.swap_remove(0));
//! round.handle_trigger(Time(0));
//! for expected in [4, 1] {
//!     let Action::SendFlit { to, bytes, .. } = round.poll(Time(0)) else { panic!() };
//!     assert_eq!((to, bytes), (PeId(1), expected));
//!     round.handle_done(Time(0)).unwrap();
//! }
//! assert_eq!(round.poll(Time(0)), Action::Turn { from: None });
//! round.handle_done(Time(0)).unwrap();
//! // Nothing is left but to hear that it has arrived.
//! assert_eq!(round.poll(Time(0)), Action::Wait { until: None });
//! assert!(round.listens_to(PeId(1)));
//! ```

mod action;
mod fault;
mod hash;
mod incoming;
mod spans;

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::smallvec;

use crate::items::{Hops, Message, Transmit};
use crate::ops::{Brief, Pe};
use crate::spans::{Port, Span};
use crate::wire::control::{Arrival, OwnStart};
use crate::wire::flit;
use crate::{MessageId, PeId, RoundId, Time, Tree};
use hash::Hash;
use incoming::{InHand, Incoming};
use spans::Recorder;

pub use action::{Action, Observer, Sized};
pub use fault::RoundFault;

/// One PE's part of one round.
#[derive(Debug)]
pub struct Round<O = ()> {
    id: RoundId,
    pe: Pe,
    flit_bytes: u32,
    /// Of the messages that start here and are cut each in its own way.
    packet_bytes: BTreeMap<MessageId, u32>,
    /// Flits that are sent at once.
    piece_flits: u64,
    observer: O,
    /// Whether it sends and receives at once.
    is_duplex: bool,
    /// What [`Round::poll`] said last.
    given: Option<Given>,
    /// What its driver is sending meanwhile.
    under_way: Option<Given>,
    /// Payload that it has sent since it looked for what comes.
    unlooked_bytes: u64,
    outgoing: Option<Outgoing>,
    incoming: Option<Incoming>,
    /// What other neighbours are in the middle of, and the hash of each.
    aside: BTreeMap<PeId, (Incoming, Hash)>,
    /// Of the payload so far of the message that goes out, and of the one that comes in.
    sent_hash: Hash,
    taken_hash: Hash,
    /// Payload bytes that `sent_hash` is of, from the start of the message. Whoever gets a part has
    /// all ahead of it already, so that went first, and is hashed.
    hashed_bytes: u64,
    /// Messages of which more is to go, how many bytes are hashed, and the hash.
    begun: BTreeMap<MessageId, (u64, Hash)>,
    /// Messages of which a part has come, and the hash of that.
    paused: BTreeMap<MessageId, (Incoming, Hash)>,
    /// The frame that was taken last, while there is something to do with it.
    in_hand: Option<InHand>,
    /// Messages that this PE holds, and how many bytes of each are here.
    held: BTreeMap<MessageId, u64>,
    /// The messages that are for this PE, and their places by id.
    arrivals: Vec<Arrival>,
    places: BTreeMap<MessageId, usize>,
    has_begun: bool,
    is_over: bool,
    own_start: Option<OwnStart>,
    late_frames: u64,
    buffered_flits: u64,
    peak_buffered_flits: u64,
    recorder: Recorder,
}

/// A message, or a part of one, that goes out from here, flit by flit.
#[derive(Debug)]
struct Outgoing {
    /// The neighbours that get it, and which of them has had the flit that goes now.
    to: Hops,
    turn: usize,
    message: Message,
    offset: u64,
    /// Where the part ends.
    end: u64,
    /// Nothing of the message goes from here behind it.
    is_last: bool,
    since: Time,
}

/// An action, and when it was first asked for.
#[derive(Debug)]
struct Given {
    action: Action,
    since: Time,
    /// It goes between two flits, and does not take the port from their message.
    interjected: bool,
}

impl Round {
    /// A PE's part of round `id`, which begins. Nobody hears of it.
    pub fn new(id: RoundId, tree: Arc<Tree>, pe: PeId, brief: Brief) -> Round {
        Round::observed(id, tree, pe, brief, ())
    }
}

impl<O: Observer> Round<O> {
    /// The same, and `observer` hears of it.
    pub fn observed(id: RoundId, tree: Arc<Tree>, pe: PeId, brief: Brief, observer: O) -> Round<O> {
        let arrivals: Vec<Arrival> = brief.takes.iter().map(|it| Arrival::of(it, pe)).collect();
        let ids = arrivals.iter().map(|arrival| arrival.message);
        let own_ids = brief.sends.iter().map(|message| message.id);
        Round {
            id,
            flit_bytes: brief.flit_bytes,
            packet_bytes: own_ids.zip(brief.packet_bytes.iter().copied()).collect(),
            piece_flits: 1,
            is_duplex: brief.operation.is_duplex(),
            pe: Pe::new(tree, pe, brief),
            observer,
            given: None,
            under_way: None,
            unlooked_bytes: 0,
            outgoing: None,
            incoming: None,
            aside: BTreeMap::new(),
            sent_hash: Hash::default(),
            taken_hash: Hash::default(),
            hashed_bytes: 0,
            begun: BTreeMap::new(),
            paused: BTreeMap::new(),
            in_hand: None,
            held: BTreeMap::new(),
            places: ids.zip(0..).collect(),
            arrivals,
            has_begun: false,
            is_over: false,
            own_start: None,
            late_frames: 0,
            buffered_flits: 0,
            peak_buffered_flits: 0,
            recorder: Recorder::new(0),
        }
    }

    /// Keeps the first so many spans of what its ports do.
    pub fn record_spans(mut self, most: usize) -> Round<O> {
        self.recorder = Recorder::new(most);
        self
    }

    /// Sends so many flits at once: for a prediction, to which all flits of a message are alike.
    pub fn in_pieces(mut self, flits: u64) -> Round<O> {
        self.piece_flits = flits;
        self
    }

    /// Which round it is.
    pub fn id(&self) -> RoundId {
        self.id
    }

    /// Which PE it is.
    pub fn pe(&self) -> PeId {
        self.pe.id()
    }

    /// P0 begins.
    pub fn handle_trigger(&mut self, now: Time) {
        self.begin();
        self.pe.handle_trigger(now);
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.observer.begun();
        }
    }

    /// What to do now. Asked again before [`Round::handle_done`] it says the same, or what has
    /// become due meanwhile between two flits.
    pub fn poll(&mut self, now: Time) -> Action {
        // The machine says these once.
        if let Some(Given { action, .. }) = &self.given
            && matches!(action, Action::SendControl { .. } | Action::Turn { .. })
        {
            return action.clone();
        }
        let counts = || self.incoming.as_ref().is_some_and(Incoming::counts);
        let moves = self.is_duplex || self.outgoing.is_some() || counts();
        let interjection = moves.then(|| self.pe.poll_interjection(now)).flatten();
        let action = match interjection {
            Some((to, item)) => Action::SendControl { to, item },
            None => self.next(now),
        };
        if !matches!(action, Action::Wait { .. } | Action::Finished) {
            self.given = Some(Given {
                action: action.clone(),
                since: now,
                interjected: interjection.is_some(),
            });
        }
        action
    }

    fn next(&mut self, now: Time) -> Action {
        loop {
            if let Some(action) = self.poll_in_hand(now) {
                return action;
            }
            if let Some(action) = self.poll_incoming() {
                return action;
            }
            if self.under_way.is_some() {
                return Action::Wait { until: None };
            }
            // What comes has its turn behind each full flit that goes, or behind many short ones.
            if self.is_duplex && self.unlooked_bytes >= self.piece_bytes(None) {
                self.unlooked_bytes = 0;
                return Action::Wait { until: Some(now) };
            }
            if let Some(action) = self.poll_outgoing() {
                return action;
            }
            match self.pe.poll_transmit(now) {
                Some(Transmit::Control { to, item }) => return Action::SendControl { to, item },
                Some(Transmit::Message { to, message }) => {
                    self.send(now, to, message, [0, message.bytes], true);
                }
                Some(Transmit::Part {
                    to,
                    message,
                    bytes,
                    is_last,
                }) => self.send(now, smallvec![to], message, bytes, is_last),
                None if self.pe.is_finished() => {
                    if !std::mem::replace(&mut self.is_over, true) {
                        self.observer.finished();
                    }
                    return Action::Finished;
                }
                None => {
                    let until = self.pe.poll_timeout();
                    return Action::Wait { until };
                }
            }
        }
    }

    fn send(&mut self, now: Time, to: Hops, message: Message, bytes: [u64; 2], is_last: bool) {
        let [offset, end] = bytes;
        match self.begun.remove(&message.id) {
            Some(begun) => (self.hashed_bytes, self.sent_hash) = begun,
            None => {
                self.hashed_bytes = 0;
                self.sent_hash.reset();
            }
        }
        self.outgoing = Some(Outgoing {
            to,
            turn: 0,
            message,
            offset,
            end,
            is_last,
            since: now,
        });
    }

    /// Whether a message that goes out is one that came, and goes as it did.
    fn is_held(&self, message: &Message) -> bool {
        message.source != self.pe.id()
    }

    /// Payload that is sent at once of a message, or of most.
    fn piece_bytes(&self, message: Option<MessageId>) -> u64 {
        let own = message.and_then(|id| self.packet_bytes.get(&id));
        let flit_bytes = own.copied().unwrap_or(self.flit_bytes);
        self.piece_flits.saturating_mul(flit_bytes.into())
    }

    /// The next of the message that goes out; `None` if there is none, or it is yet to come.
    fn poll_outgoing(&mut self) -> Option<Action> {
        let outgoing = self.outgoing.as_ref()?;
        let (message, offset) = (outgoing.message, outgoing.offset);
        let left = outgoing.end - offset;
        let bytes = left.min(self.piece_bytes(Some(message.id)));
        let is_held = self.is_held(&message);
        let Some(&to) = outgoing.to.get(outgoing.turn).filter(|_| left > 0) else {
            self.through();
            return Some(Action::Turn { from: None });
        };
        match outgoing.turn {
            _ if is_held => {
                let here = self.held.get(&message.id).copied().unwrap_or(0);
                (offset + bytes <= here).then_some(Action::SendHeld {
                    to,
                    message,
                    offset,
                    bytes,
                    is_last: outgoing.is_last && bytes == left,
                })
            }
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

    /// The message that goes out is through, or a part of it.
    fn through(&mut self) {
        let Some(outgoing) = self.outgoing.take() else {
            return;
        };
        let id = outgoing.message.id;
        if self.is_held(&outgoing.message) {
            if outgoing.is_last {
                self.held.remove(&id);
                self.buffers(0);
            }
        } else if !outgoing.is_last {
            let hash = std::mem::take(&mut self.sent_hash);
            self.begun.insert(id, (self.hashed_bytes, hash));
        }
        self.pe.handle_sent();
    }

    /// What [`Round::poll`] said is done.
    ///
    /// # Errors
    ///
    /// A message is whole, and not what its source sent.
    pub fn handle_done(&mut self, now: Time) -> Result<(), RoundFault> {
        match self.given.take() {
            Some(given) => self.done(now, given),
            None => Ok(()),
        }
    }

    /// The flit that [`Round::poll`] said is to be sent is with its connection, which will take
    /// what is left of it; [`Round::handle_through`] tells when it has. Only where PEs send and
    /// receive at once.
    pub fn handle_under_way(&mut self) {
        self.under_way = self.given.take().or(self.under_way.take());
    }

    /// What was under way is sent.
    ///
    /// # Errors
    ///
    /// As [`Round::handle_done`].
    pub fn handle_through(&mut self, now: Time) -> Result<(), RoundFault> {
        match self.under_way.take() {
            Some(given) => self.done(now, given),
            None => Ok(()),
        }
    }

    /// Whether a part of a message of this PE has gone, and another one is yet to.
    pub fn goes_on_with(&self, message: &Message) -> bool {
        self.begun.contains_key(&message.id)
    }

    /// Whether a flit is under way.
    pub fn is_under_way(&self) -> bool {
        self.under_way.is_some()
    }

    /// Whether it sends and receives at once.
    pub fn is_duplex(&self) -> bool {
        self.is_duplex
    }

    fn done(&mut self, now: Time, given: Given) -> Result<(), RoundFault> {
        match given.action {
            Action::SendControl { to, item } => {
                let span = [given.since, now];
                self.recorder.keep(Port::Send, to, item, span);
                if !given.interjected {
                    self.pe.handle_sent();
                }
            }
            Action::SendFlit { bytes, .. } => {
                self.observer.moved(bytes);
                self.sent(now, bytes);
            }
            Action::SendAgain { bytes, .. } | Action::SendHeld { bytes, .. } => {
                self.sent(now, bytes);
            }
            done => self.done_in_hand(now, &done)?,
        }
        Ok(())
    }

    fn sent(&mut self, now: Time, bytes: u64) {
        self.unlooked_bytes += bytes;
        let Some(outgoing) = &mut self.outgoing else {
            return;
        };
        let (to, message) = (outgoing.to[outgoing.turn], outgoing.message);
        outgoing.turn += 1;
        if outgoing.offset + bytes == outgoing.end {
            let span = [outgoing.since, now];
            self.recorder.keep(Port::Send, to, message, span);
        }
        if outgoing.turn == outgoing.to.len() {
            self.pe.handle_progress(now, bytes);
            outgoing.turn = 0;
            outgoing.offset += bytes;
        }
    }

    /// Appends what goes ahead of the payload of the flit that is to be sent: the length of its
    /// frame included. The payload is hashed.
    pub fn put_prefix(&mut self, now: Time, payload: &[u8], out: &mut Vec<u8>) {
        let Some(outgoing) = &mut self.outgoing else {
            return;
        };
        let message = outgoing.message;
        // What has gone to somebody else is hashed already.
        if outgoing.offset == self.hashed_bytes {
            self.sent_hash.update(payload);
            self.hashed_bytes += payload.len() as u64;
        }
        let is_first = outgoing.offset == 0;
        let is_last = outgoing.offset + payload.len() as u64 == message.bytes;
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

    /// Whether a frame of this neighbour would be taken now. Others' wait in the network.
    pub fn listens_to(&self, from: PeId) -> bool {
        match &self.incoming {
            _ if self.in_hand.is_some() => false,
            _ if self.outgoing.is_some() && !self.is_duplex => false,
            Some(incoming) if incoming.from == from => true,
            Some(_) if !self.is_duplex => false,
            _ if self.aside.contains_key(&from) => true,
            _ => self.pe.listens_to(from),
        }
    }

    /// How many bytes of flits that are not whole have to be here until the round wants to know
    /// of it; `None`, if it does not.
    pub fn awaits_bytes(&self) -> Option<u64> {
        self.pe.awaits_bytes()
    }

    /// So many bytes of flits that are not whole are here.
    pub fn handle_arriving(&mut self, bytes: u64) {
        self.pe.handle_arriving(bytes);
    }

    /// Who is in the middle of a message to this PE.
    pub fn awaits_rest_from(&self) -> Option<PeId> {
        self.incoming.as_ref().map(|incoming| incoming.from)
    }

    /// Bytes that have come of a message for this PE, or of one that it holds.
    pub fn bytes_taken(&self, message: MessageId) -> u64 {
        let paused = self.paused.get(&message).map(|(incoming, _)| incoming);
        let aside = self.aside.values().map(|(incoming, _)| incoming);
        let mut under_way = self.incoming.iter().chain(aside);
        let under_way = under_way.find(|it| it.is(message));
        under_way.or(paused).map_or(0, Incoming::taken)
    }

    /// Flits of others' messages in memory: those held, and `passing` ones.
    fn buffers(&mut self, passing: u64) {
        let flit_bytes = u64::from(self.flit_bytes);
        let held = self.held.values().map(|bytes| bytes.div_ceil(flit_bytes));
        let flits = held.sum::<u64>() + passing;
        if std::mem::replace(&mut self.buffered_flits, flits) != flits {
            self.observer.holds(flits);
            self.peak_buffered_flits = self.peak_buffered_flits.max(flits);
        }
    }

    /// A message for this PE is durable and visible. It may be the round's end, or come after
    /// it was given up.
    pub fn handle_delivered(&mut self, now: Time, message: Message) {
        let Some(arrival) = self.arrival(&message) else {
            return;
        };
        arrival.delivered = true;
        arrival.delivered_ns = now.0;
        self.pe.handle_delivered();
    }

    /// The same of a message made of files, which took a while since its last byte came.
    pub fn handle_committed(&mut self, now: Time, message: Message) {
        let came = self.arrival(&message).map_or(now, |it| Time(it.at_ns));
        let span = [came, now];
        self.recorder
            .keep(Port::Files, message.source, message, span);
        self.handle_delivered(now, message);
    }

    fn arrival(&mut self, message: &Message) -> Option<&mut Arrival> {
        let place = self.places.get(&message.id)?;
        self.arrivals.get_mut(*place)
    }

    /// The messages that are for this PE, and how far each is.
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// When the PE's own message was due and began; `None` where nobody says when, and before
    /// it has.
    pub fn own_start(&self) -> Option<OwnStart> {
        self.own_start
    }

    /// Frames of earlier rounds that have come.
    pub fn late_frames(&self) -> u64 {
        self.late_frames
    }

    /// The most flits of others' messages that were in memory at once.
    pub fn peak_buffered_flits(&self) -> u64 {
        self.peak_buffered_flits
    }

    /// What its ports did, as far as that was to be kept.
    pub fn take_spans(&mut self) -> Vec<Span> {
        self.recorder.take()
    }
}
