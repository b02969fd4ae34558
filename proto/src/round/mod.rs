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
//! neighbours' messages come at once, flit by flit; where each neighbour has a port of its own,
//! messages go to several at once as well.
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
mod outgoing;
mod spans;

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use crate::items::{Message, Transmit};
use crate::ops::{Brief, Pe};
use crate::spans::{Port, Span};
use crate::wire::control::{Arrival, OwnStart};
use crate::{MessageId, PeId, RoundId, Time, Tree};
use hash::Hash;
use incoming::{InHand, Incoming};
use outgoing::Outgoing;
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
    /// What its driver is sending meanwhile, to one neighbour each.
    under_way: SmallVec<[Given; 1]>,
    /// Payload that it has sent since it looked for what comes.
    unlooked_bytes: u64,
    /// What goes out: one thing, or one to each neighbour that has a port of its own.
    outgoing: SmallVec<[Outgoing; 1]>,
    /// Of messages of which a part has been among it: no byte ahead of this place goes out behind
    /// what is.
    later_from: BTreeMap<MessageId, u64>,
    /// Of own messages that go by several ports, bytes that have gone to anybody, from the start.
    gone: BTreeMap<MessageId, u64>,
    incoming: Option<Incoming>,
    /// What other neighbours are in the middle of, and the hash of each.
    aside: BTreeMap<PeId, (Incoming, Hash)>,
    /// Of the payload so far of the message that comes in, and of the own one that went last.
    taken_hash: Hash,
    sent_hash: Hash,
    /// Which one that is, while more of it is to go; and payload bytes that are hashed, from the start
    /// of the message. Whoever gets a part has all ahead of it already, so that went first.
    hashed: Option<MessageId>,
    hashed_bytes: u64,
    /// Others of which more is to go, how many bytes are hashed, and the hash.
    begun: BTreeMap<MessageId, (u64, Hash)>,
    /// Messages of which a part has come, and the hash of that.
    paused: BTreeMap<MessageId, (Incoming, Hash)>,
    /// The frame that was taken last, while there is something to do with it.
    in_hand: Option<InHand>,
    /// Messages that this PE holds, and of each how many bytes have come, and how many of these are
    /// needed no more.
    held: BTreeMap<MessageId, [u64; 2]>,
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
            under_way: SmallVec::new(),
            unlooked_bytes: 0,
            outgoing: SmallVec::new(),
            later_from: BTreeMap::new(),
            gone: BTreeMap::new(),
            incoming: None,
            aside: BTreeMap::new(),
            taken_hash: Hash::default(),
            sent_hash: Hash::default(),
            hashed: None,
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
        let moves = self.is_duplex || !self.outgoing.is_empty() || counts();
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
            if !self.under_way.is_empty() && !self.pe.has_all_ports() {
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
                    self.send(now, to, message, [0, message.bytes], u64::MAX);
                }
                Some(Transmit::Part {
                    to,
                    message,
                    bytes,
                    later_from,
                }) => self.send(now, smallvec![to], message, bytes, later_from),
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
        self.under_way.extend(self.given.take());
    }

    /// What was under way to this neighbour is sent.
    ///
    /// # Errors
    ///
    /// As [`Round::handle_done`].
    pub fn handle_through(&mut self, now: Time, to: PeId) -> Result<(), RoundFault> {
        let mut all = self.under_way.iter();
        match all.position(|given| given.action.sends_to() == Some(to)) {
            Some(place) => {
                let given = self.under_way.swap_remove(place);
                self.done(now, given)
            }
            None => Ok(()),
        }
    }

    /// Whether a flit is under way to this neighbour.
    pub fn is_under_way_to(&self, to: PeId) -> bool {
        let mut all = self.under_way.iter();
        all.any(|given| given.action.sends_to() == Some(to))
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
            Action::SendFlit {
                to,
                message,
                offset,
                bytes,
            } => {
                if self.pe.has_all_ports() {
                    let gone = self.gone.entry(message.id).or_default();
                    *gone = (*gone).max(offset + bytes);
                }
                self.observer.moved(bytes);
                self.sent(now, to, bytes);
            }
            Action::SendAgain { to, bytes, .. } => self.sent(now, to, bytes),
            Action::SendHeld {
                to,
                message,
                bytes,
                later_from,
                ..
            } => {
                self.sent(now, to, bytes);
                if let Some([_, gone]) = self.held.get_mut(&message.id) {
                    *gone = later_from.max(*gone);
                    self.buffers(0);
                }
            }
            done => self.done_in_hand(now, &done)?,
        }
        Ok(())
    }

    /// Whether a frame of this neighbour would be taken now. Others' wait in the network.
    pub fn listens_to(&self, from: PeId) -> bool {
        match &self.incoming {
            _ if self.in_hand.is_some() => false,
            _ if !self.outgoing.is_empty() && !self.is_duplex => false,
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
        let held = self
            .held
            .values()
            .map(|[here, gone]| here.saturating_sub(*gone));
        let held = held.map(|bytes| bytes.div_ceil(flit_bytes));
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

    /// The same of a message made of files, which took a while since its last byte came. Parts of a
    /// message become visible together: that has taken the time since the last of them was here.
    pub fn handle_committed(&mut self, now: Time, message: Message) {
        self.handle_delivered(now, message);
        let whole = self.pe.whole(message.id);
        let is_part = |it: &&Arrival| self.pe.whole(it.message) == whole;
        let parts = || self.arrivals.iter().filter(is_part);
        if let (Some(came), true) = (
            parts().map(|it| it.at_ns).max(),
            parts().all(|it| it.delivered),
        ) {
            let span = [Time(came), now];
            self.recorder
                .keep(Port::Files, message.source, message, span);
        }
    }

    fn arrival(&mut self, message: &Message) -> Option<&mut Arrival> {
        let place = self.places.get(&message.id)?;
        self.arrivals.get_mut(*place)
    }

    /// The messages that are for this PE, and how far each is, with all its parts.
    pub fn arrivals(&self) -> Vec<Arrival> {
        let whole = |part: &Arrival| Arrival {
            message: self.pe.whole(part.message),
            ..*part
        };
        Arrival::joined(self.arrivals.iter().map(whole))
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

#[cfg(test)]
mod tests;
