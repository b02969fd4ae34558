//! One PE's part of one round, without I/O.
//!
//! A driver, which moves the bytes, calls [`Round::poll`] for the next action, does it, reports its
//! end with [`Round::handle_done`], and passes on what it receives ([`Round::handle_frame`]). There
//! are three drivers: the node uses sockets and files, the storm a simulated network, the
//! prediction the costs of each action. This module decides for all of them what a frame means,
//! where it goes, which frames are late, what is verified and what goes between two flits; the
//! state machine [`PeMachine`] decides the schedule.
//!
//! The round does not copy payload: a frame stays where its driver has read it and is the frame in
//! hand until [`Action::Drop`]. Actions do not overlap: an item is sent completely, and a message
//! is received completely, before the next one. Only the buffers of the network overlap them.
//!
//! If all PEs send to each other, two PEs that only send would wait for each other forever. In such
//! an operation a PE sends and receives at the same time, one message in each direction: a flit
//! that a connection does not accept yet is in progress ([`Round::handle_under_way`]) while the
//! round continues to receive, and messages are sent and received in parts. If receivers call their
//! senders, messages of several neighbours arrive at once, flit by flit; if each neighbour has its
//! own port, messages also go to several neighbours at once.
//!
//! ```
//! # use std::sync::Arc;
//! # use flitcast_proto::round::{Action, Round};
//! # use flitcast_plan::{Algorithm, timing::Timing};
//! # use flitcast_proto::{PeId, RoundId, Time, Tree};
//! // P0 scatters 5 bytes to P1, in flits of at most 4.
//! let tree = Arc::new(Tree::from_parents(vec![None, Some(PeId(0))]).unwrap());
//! let mut briefs = Algorithm::FARTHEST_FIRST.schedules(&tree, &[0, 5], &Timing::LOCK_STEP);
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
//! // Only the receipt is missing.
//! assert_eq!(round.poll(Time(0)), Action::Wait { until: None });
//! assert!(round.listens_to(PeId(1)));
//! ```

mod action;
mod arrivals;
mod error;
mod hash;
mod held;
mod incoming;
mod outgoing;
mod receiving;
mod spans;

use std::sync::Arc;

use smallvec::smallvec;

use crate::items::{Message, Packing, Transmit};
use crate::ops::{PeMachine, PeSchedule};
use crate::spans::{Port, Span};
use crate::streams::Streams;
use crate::wire::control::{Arrival, OwnStart};
use crate::wire::flit::Digest;
use crate::{MessageId, PeId, RoundId, Time, Tree};
use arrivals::Arrivals;
use hash::OwnHashes;
use held::Buffers;
use outgoing::Sending;
use receiving::{Incoming, Receiving};
use spans::Recorder;

pub use action::{Action, Observer, Sized};
pub use error::ProtocolError;

/// One PE's part of one round.
#[derive(Debug)]
pub struct Round<O = ()> {
    id: RoundId,
    pe: PeMachine,
    observer: O,
    /// Whether the PE sends and receives at the same time.
    is_duplex: bool,
    start: Start,
    is_over: bool,
    /// The last action that [`Round::poll`] returned.
    given: Option<PendingAction>,
    sending: Sending,
    receiving: Receiving,
    own_hashes: OwnHashes,
    arrivals: Arrivals,
    buffers: Buffers,
    late_frames: u64,
    recorder: Recorder,
    streams: Streams,
}

/// The beginning of the round at this PE.
#[derive(Debug, Default)]
struct Start {
    has_begun: bool,
    /// The time of the trigger, and when the first action after that was polled.
    begins_at: Option<Time>,
    began_at: Option<Time>,
    own_start: Option<OwnStart>,
}

/// An action, and the time when [`Round::poll`] first returned it.
#[derive(Debug)]
struct PendingAction {
    action: Action,
    since: Time,
    /// Whether it goes between two flits and leaves the port to their message.
    interjected: bool,
}

impl Round {
    /// Creates a PE's part of round `id`, without an observer.
    pub fn new(id: RoundId, tree: Arc<Tree>, pe: PeId, brief: PeSchedule) -> Round {
        Round::observed(id, tree, pe, brief, ())
    }
}

impl<O: Observer> Round<O> {
    /// Creates a PE's part of round `id` that reports its events to `observer`.
    pub fn observed(
        id: RoundId,
        tree: Arc<Tree>,
        pe: PeId,
        brief: PeSchedule,
        observer: O,
    ) -> Round<O> {
        Round {
            id,
            observer,
            is_duplex: brief.is_duplex(),
            start: Start::default(),
            is_over: false,
            given: None,
            sending: Sending::new(&brief),
            receiving: Receiving::default(),
            own_hashes: OwnHashes::default(),
            arrivals: Arrivals::new(&brief, pe),
            buffers: Buffers::new(brief.flit_bytes),
            pe: PeMachine::new(tree, pe, brief),
            late_frames: 0,
            recorder: Recorder::new(0),
            streams: Streams::default(),
        }
    }

    /// Records the first `most` spans of the ports.
    pub fn record_spans(mut self, most: usize) -> Round<O> {
        self.recorder = Recorder::new(most);
        self
    }

    /// Sends `flits` flits at a time, for a prediction, to which all flits of a message are equal.
    pub fn in_pieces(mut self, flits: u64) -> Round<O> {
        self.sending.piece_flits = flits;
        self
    }

    /// Returns the number of the round.
    pub fn id(&self) -> RoundId {
        self.id
    }

    /// Returns the id of the PE.
    pub fn pe(&self) -> PeId {
        self.pe.id()
    }

    /// Starts the round: at P0 now, or, if all PEs are triggered, at the given time.
    pub fn handle_trigger(&mut self, at: Time) {
        self.begin();
        self.start.begins_at = Some(at);
        self.pe.handle_trigger(at);
    }

    /// Returns when this PE began after its trigger.
    pub fn began_at(&self) -> Option<Time> {
        self.start.began_at
    }

    fn begin(&mut self) {
        if !std::mem::replace(&mut self.start.has_begun, true) {
            self.observer.begun();
        }
    }

    /// Returns the next action. Before [`Round::handle_done`] it returns the same action again, or
    /// a control item that has become due between two flits.
    pub fn poll(&mut self, now: Time) -> Action {
        let start = &mut self.start;
        if start.began_at.is_none() && start.begins_at.is_some_and(|at| at <= now) {
            start.began_at = Some(now);
        }
        // The state machine returns these only once.
        if let Some(PendingAction { action, .. }) = &self.given
            && matches!(action, Action::SendControl { .. } | Action::Turn { .. })
        {
            return action.clone();
        }
        let counts = || {
            self.receiving
                .incoming
                .as_ref()
                .is_some_and(Incoming::counts)
        };
        let moves = self.is_duplex || !self.sending.outgoing.is_empty() || counts();
        let interjection = moves.then(|| self.pe.poll_interjection(now)).flatten();
        let action = match interjection {
            Some((to, item)) => Action::SendControl { to, item },
            None => self.next(now),
        };
        if !matches!(action, Action::Wait { .. } | Action::Finished) {
            self.given = Some(PendingAction {
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
            if !self.sending.under_way.is_empty() && !self.pe.has_all_ports() {
                return Action::Wait { until: None };
            }
            // Checks for incoming frames after each full flit, or after as many bytes of short
            // ones.
            if self.is_duplex && self.sending.unlooked_bytes >= self.sending.piece_bytes(None) {
                self.sending.unlooked_bytes = 0;
                return Action::Wait { until: Some(now) };
            }
            if let Some(action) = self.poll_outgoing() {
                return action;
            }
            match self.pe.poll_transmit(now) {
                Some(Transmit::Control { to, item }) => return Action::SendControl { to, item },
                Some(Transmit::Message { to, message }) => {
                    let bytes = [0, message.bytes];
                    self.sending
                        .add(now, to, message, bytes, u64::MAX, Packing::Flits);
                }
                Some(Transmit::Part {
                    to,
                    message,
                    bytes,
                    later_from,
                    packing,
                }) => self
                    .sending
                    .add(now, smallvec![to], message, bytes, later_from, packing),
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

    /// Reports that the last action is done.
    ///
    /// # Errors
    ///
    /// Returns an error if a complete message differs from what its source sent.
    pub fn handle_done(&mut self, now: Time) -> Result<(), ProtocolError> {
        match self.given.take() {
            Some(given) => self.done(now, given),
            None => Ok(()),
        }
    }

    /// Reports that the connection has accepted the flit of the last action and will send the rest
    /// of it; [`Round::handle_through`] reports the end. Only if PEs send and receive at the same
    /// time.
    pub fn handle_under_way(&mut self) {
        self.sending.under_way.extend(self.given.take());
    }

    /// Reports that the transmission in progress to this neighbour is complete.
    ///
    /// # Errors
    ///
    /// Returns an error as [`Round::handle_done`] does.
    pub fn handle_through(&mut self, now: Time, to: PeId) -> Result<(), ProtocolError> {
        let mut all = self.sending.under_way.iter();
        match all.position(|given| given.action.sends_to() == Some(to)) {
            Some(place) => {
                let given = self.sending.under_way.swap_remove(place);
                self.done(now, given)
            }
            None => Ok(()),
        }
    }

    /// Returns whether a flit to this neighbour is in progress.
    pub fn is_under_way_to(&self, to: PeId) -> bool {
        self.sending.is_under_way_to(to)
    }

    /// Returns whether the PE sends and receives at the same time.
    pub fn is_duplex(&self) -> bool {
        self.is_duplex
    }

    fn done(&mut self, now: Time, given: PendingAction) -> Result<(), ProtocolError> {
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
                ..
            } => {
                if self.pe.has_all_ports() {
                    self.sending.went(message.id, offset + bytes);
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
                self.buffers.held.give_up_to(message.id, later_from);
                self.count_buffers(0);
            }
            done => self.done_in_hand(now, &done)?,
        }
        Ok(())
    }

    /// Returns whether a frame of this neighbour is accepted now. Frames of other neighbours wait
    /// in the network.
    pub fn listens_to(&self, from: PeId) -> bool {
        match &self.receiving.incoming {
            _ if self.receiving.in_hand.is_some() => false,
            _ if !self.sending.outgoing.is_empty() && !self.is_duplex => false,
            Some(incoming) if incoming.from == from => true,
            Some(_) if !self.is_duplex => false,
            _ if self.receiving.aside.contains_key(&from) => true,
            _ => self.pe.listens_to(from),
        }
    }

    /// Returns the number of bytes of incomplete flits at which the driver is to call
    /// [`Round::handle_arriving`], or `None` if it need not.
    pub fn awaits_bytes(&self) -> Option<u64> {
        self.pe.awaits_bytes()
    }

    /// Reports that `bytes` bytes of incomplete flits have arrived.
    pub fn handle_arriving(&mut self, bytes: u64) {
        self.pe.handle_arriving(bytes);
    }

    /// Returns the neighbour whose message is incomplete.
    pub fn awaits_rest_from(&self) -> Option<PeId> {
        let incoming = self.receiving.incoming.as_ref();
        incoming.map(|incoming| incoming.from)
    }

    /// Returns the number of bytes that have arrived of a message for this PE, or of one that it
    /// holds.
    pub fn bytes_taken(&self, message: MessageId) -> u64 {
        self.receiving.bytes_taken(message)
    }

    /// Reports that a message for this PE is durable and visible. This may end the round, or come
    /// after the round was given up.
    pub fn handle_delivered(&mut self, now: Time, message: Message) {
        let Some(arrival) = self.arrivals.of(&message) else {
            return;
        };
        arrival.delivered = true;
        arrival.delivered_ns = now.0;
        self.pe.handle_delivered();
    }

    /// Reports that a message made of files is durable and visible, some time after its last byte.
    /// Parts of a message become visible together, after the last of them. `digest` is the digest
    /// of the written files; only one of the parts has it.
    pub fn handle_committed(&mut self, now: Time, message: Message, digest: Option<Digest>) {
        self.handle_delivered(now, message);
        if let Some(arrival) = self.arrivals.of(&message) {
            arrival.digest = digest;
        }
        let whole = self.pe.whole(message.id);
        let is_part = |it: &&Arrival| self.pe.whole(it.message) == whole;
        let parts = || self.arrivals.all.iter().filter(is_part);
        if let (Some(came), true) = (
            parts().map(|it| it.at_ns).max(),
            parts().all(|it| it.delivered),
        ) {
            let span = [Time(came), now];
            self.recorder
                .keep(Port::Files, message.source, message, span);
        }
    }

    /// Returns the messages for this PE with their progress over all parts.
    pub fn arrivals(&self) -> Vec<Arrival> {
        let whole = |part: &Arrival| Arrival {
            message: self.pe.whole(part.message),
            ..*part
        };
        Arrival::joined(self.arrivals.all.iter().map(whole))
    }

    /// Returns when the PE's own message was due and when it began; `None` if no due time is known,
    /// or before the begin.
    pub fn own_start(&self) -> Option<OwnStart> {
        self.start.own_start
    }

    /// Returns the number of frames of earlier rounds that have arrived.
    pub fn late_frames(&self) -> u64 {
        self.late_frames
    }

    /// Returns the maximum number of flits of other PEs' messages that were in memory at once.
    pub fn peak_buffered_flits(&self) -> u64 {
        self.buffers.peak_flits
    }

    /// Returns the recorded spans of the ports.
    pub fn take_spans(&mut self) -> Vec<Span> {
        self.recorder.take()
    }

    /// Returns the received certificates, order and streams of a gather by certification.
    pub fn take_streams(&mut self) -> Streams {
        std::mem::take(&mut self.streams)
    }
}
