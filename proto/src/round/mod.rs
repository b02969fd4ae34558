//! One PE's part of one round, without I/O.
//!
//! A driver, which moves the bytes, calls [`Round::poll`] for the next action, does it, reports its
//! end with [`Round::handle_done`], and passes on what it receives ([`Round::handle_frame`]). There
//! are three drivers: the node uses sockets and files, the storm a simulated network, the
//! prediction the costs of each action. This module decides for all of them what a frame means,
//! where it goes, which frames are late, what is verified and what goes between two flits; the
//! state machine [`PeMachine`](crate::ops::PeMachine) decides the schedule.
//!
//! The round does not copy payload: a frame stays where its driver has read it and is the frame in
//! hand until [`Action::Drop`].
//!
//! There are two kinds of rounds, which share their parts (`shared.rs`). In a relay round
//! (`relay_round.rs`) actions do not overlap: an item is sent completely, and a message is received
//! completely, before the next one. Only the buffers of the network overlap them.
//!
//! If all PEs send to each other, two PEs that only send would wait for each other forever. In a list
//! round (`list_round.rs`) a PE sends and receives at the same time: a flit that a connection does not
//! accept yet is in progress ([`Round::handle_under_way`]) while the round continues to receive, and
//! messages are sent and received in parts. If receivers call their senders, messages of several
//! neighbours arrive at once, flit by flit; if each neighbour has its own port, messages also go to
//! several neighbours at once.
//!
//! ```
//! # use std::sync::Arc;
//! # use flitcast_proto::round::{Action, Round};
//! # use flitcast_plan::{Algorithm, timing::Timing};
//! # use flitcast_proto::{PeId, RoundId, Time, Tree};
//! // P0 scatters 5 bytes to P1, in flits of at most 4.
//! let tree = Arc::new(Tree::from_parents(vec![None, Some(PeId(0))]).unwrap());
//! let mut schedules = Algorithm::FARTHEST_FIRST.schedules(&tree, &[0, 5], &Timing::LOCK_STEP);
//! schedules[0].flit_bytes = 4;
//! let mut round = Round::new(RoundId(1), tree, PeId(0), schedules.swap_remove(0));
//! round.handle_trigger(Time(0));
//! for expected in [4, 1] {
//!     let Action::SendFlit { to, piece, .. } = round.poll(Time(0)) else { panic!() };
//!     assert_eq!((to, piece.bytes), (PeId(1), expected));
//!     round.handle_done(Time(0)).unwrap();
//! }
//! assert_eq!(round.poll(Time(0)), Action::Turn { from: None });
//! round.handle_done(Time(0)).unwrap();
//! // Only the receipt is missing.
//! assert_eq!(round.poll(Time(0)), Action::Wait { until: None });
//! assert!(round.listens_to(PeId(1)));
//! ```

mod action;
mod hash;
mod incoming;
mod list_round;
mod outgoing;
mod relay_round;
mod shared;

use std::sync::Arc;

use shared::{PendingAction, Recorder, Shared};

use crate::items::Message;
use crate::ops::PeSchedule;
use crate::spans::{Port, Span};
use crate::streams::Streams;
use crate::wire::control::{Arrival, OwnStart};
use crate::wire::edge::EdgeFrame;
use crate::wire::flit::{self, Digest, Flit};
use crate::{MessageId, PeId, RoundId, Time, Tree};

pub use action::{Action, Observer, Piece, ProtocolError, Sized};
pub use hash::prepare_hashes;
pub use list_round::ListRound;
pub use relay_round::RelayRound;

/// One PE's part of one round.
#[derive(Debug)]
pub enum Round<O = ()> {
    /// One message at a time passes through the PE.
    Relay(RelayRound<O>),
    /// The PE sends and receives at the same time, in parts.
    List(ListRound<O>),
}

impl Round {
    /// Creates a PE's part of round `id`, without an observer.
    pub fn new(id: RoundId, tree: Arc<Tree>, pe: PeId, schedule: PeSchedule) -> Round {
        Round::observed(id, tree, pe, schedule, ())
    }
}

impl<O: Observer> Round<O> {
    /// Creates a PE's part of round `id` that reports its events to `observer`.
    pub fn observed(
        id: RoundId,
        tree: Arc<Tree>,
        pe: PeId,
        schedule: PeSchedule,
        observer: O,
    ) -> Round<O> {
        let (is_duplex, all_ports) = (schedule.is_duplex(), schedule.all_ports);
        let shared = Shared::new(id, tree, pe, schedule, observer);
        match is_duplex {
            true => Round::List(ListRound::new(shared, all_ports)),
            false => Round::Relay(RelayRound::new(shared)),
        }
    }

    fn shared(&self) -> &Shared<O> {
        match self {
            Round::Relay(round) => &round.shared,
            Round::List(round) => &round.shared,
        }
    }

    fn shared_mut(&mut self) -> &mut Shared<O> {
        match self {
            Round::Relay(round) => &mut round.shared,
            Round::List(round) => &mut round.shared,
        }
    }

    /// Records the first `most` spans of the ports.
    pub fn record_spans(mut self, most: usize) -> Round<O> {
        self.shared_mut().recorder = Recorder::new(most);
        self
    }

    /// Sends `flits` flits at a time, for a prediction, to which all flits of a message are equal.
    pub fn in_pieces(mut self, flits: u64) -> Round<O> {
        self.shared_mut().sizes.piece_flits = flits;
        self
    }

    pub fn id(&self) -> RoundId {
        self.shared().id
    }

    /// Starts the round: at P0 now, or, if all PEs are triggered, at the given time.
    pub fn handle_trigger(&mut self, at: Time) {
        let shared = self.shared_mut();
        shared.begin();
        shared.start.begins_at = Some(at);
        shared.pe.handle_trigger(at);
    }

    /// Returns when this PE began after its trigger.
    pub fn began_at(&self) -> Option<Time> {
        self.shared().start.began_at
    }

    /// Returns the next action. Before [`Round::handle_done`] it returns the same action again, or
    /// a control item that has become due between two flits.
    pub fn poll(&mut self, now: Time) -> Action {
        let can_interject = match self {
            Round::Relay(round) => round.is_in_message(),
            Round::List(_) => true,
        };
        let shared = self.shared_mut();
        let start = &mut shared.start;
        if start.began_at.is_none() && start.begins_at.is_some_and(|at| at <= now) {
            start.began_at = Some(now);
        }
        // The state machine returns these only once.
        if let Some(PendingAction { action, .. }) = &shared.given
            && matches!(action, Action::SendControl { .. } | Action::Turn { .. })
        {
            return action.clone();
        }
        let interjection = can_interject.then(|| shared.pe.poll_interjection(now));
        let interjection = interjection.flatten();
        let action = match (interjection, &mut *self) {
            (Some((to, item)), _) => Action::SendControl { to, item },
            (None, Round::Relay(round)) => round.next(now),
            (None, Round::List(round)) => round.next(now),
        };
        if !matches!(action, Action::Wait { .. } | Action::Finished) {
            self.shared_mut().given = Some(PendingAction {
                action: action.clone(),
                since: now,
                interjected: interjection.is_some(),
            });
        }
        action
    }

    /// Reports that the last action is done.
    ///
    /// # Errors
    ///
    /// Returns an error if a complete message differs from what its source sent.
    pub fn handle_done(&mut self, now: Time) -> Result<(), ProtocolError> {
        match self.shared_mut().given.take() {
            Some(given) => self.done(now, given),
            None => Ok(()),
        }
    }

    /// Reports that the connection has accepted the flit of the last action and will send the rest
    /// of it; [`Round::handle_through`] reports the end. Only if PEs send and receive at the same
    /// time.
    pub fn handle_under_way(&mut self) {
        if let Round::List(round) = self {
            round.leave();
        }
    }

    /// Reports that the transmission in progress to this neighbour is complete.
    ///
    /// # Errors
    ///
    /// Returns an error as [`Round::handle_done`] does.
    pub fn handle_through(&mut self, now: Time, to: PeId) -> Result<(), ProtocolError> {
        let given = match self {
            Round::Relay(_) => None,
            Round::List(round) => round.take_under_way_to(to),
        };
        given.map_or(Ok(()), |given| self.done(now, given))
    }

    /// Returns whether a flit to this neighbour is in progress.
    pub fn is_under_way_to(&self, to: PeId) -> bool {
        matches!(self, Round::List(round) if round.is_under_way_to(to))
    }

    pub fn is_duplex(&self) -> bool {
        matches!(self, Round::List(_))
    }

    fn done(&mut self, now: Time, given: PendingAction) -> Result<(), ProtocolError> {
        let shared = self.shared_mut();
        match given.action {
            Action::SendControl { to, item } => {
                let span = [given.since, now];
                shared.recorder.keep(Port::Send, to, item, span);
                if !given.interjected {
                    shared.pe.handle_sent();
                }
            }
            Action::SendFlit { to, piece, .. } => {
                shared.observer.moved(piece.bytes);
                self.sent(now, to, piece.bytes);
            }
            Action::SendAgain { to, piece } => self.sent(now, to, piece.bytes),
            Action::SendHeld {
                to,
                piece,
                later_from,
                ..
            } => {
                self.sent(now, to, piece.bytes);
                self.shared_mut().sent_held(piece.message.id, later_from);
            }
            done => shared.done_in_hand(now, &done)?,
        }
        Ok(())
    }

    fn sent(&mut self, now: Time, to: PeId, bytes: u64) {
        match self {
            Round::Relay(round) => round.sent(now, bytes),
            Round::List(round) => round.sent(now, to, bytes),
        }
    }

    /// Returns whether a frame of this neighbour is accepted now. Frames of other neighbours wait
    /// in the network.
    pub fn listens_to(&self, from: PeId) -> bool {
        let has_frame = self.shared().receiving.in_hand.is_some();
        !has_frame
            && match self {
                Round::Relay(round) => round.listens_to(from),
                Round::List(round) => round.listens_to(from),
            }
    }

    /// Handles a frame of a neighbour that the round listens to: its body, without length and seal.
    /// The frame is in hand until [`Action::Drop`].
    ///
    /// # Errors
    ///
    /// Returns an error if the frame breaks the protocol; the round cannot continue.
    pub fn handle_frame(
        &mut self,
        now: Time,
        from: PeId,
        body: &[u8],
    ) -> Result<(), ProtocolError> {
        let wire = |error| ProtocolError::Wire { from, error };
        if flit::is_flit(body) || self.listens_only_to().is_some() {
            let flit = flit::parse(body).map_err(wire)?;
            let payload = &body[flit.payload.clone()];
            return self.handle_flit(now, from, &flit, Some(payload));
        }
        let frame = EdgeFrame::parse(body).map_err(wire)?;
        self.shared_mut().handle_other(now, from, &frame)
    }

    /// Handles a frame that has a size and no bytes, received from `since` to `now`, without
    /// verification.
    ///
    /// # Errors
    ///
    /// Returns an error as [`Round::handle_frame`] does.
    pub fn handle_sized(
        &mut self,
        [since, now]: [Time; 2],
        from: PeId,
        frame: Sized,
    ) -> Result<(), ProtocolError> {
        let piece = match frame {
            Sized::Control(item) => {
                return self.shared_mut().handle_control([since, now], from, item);
            }
            Sized::Flits(piece) => piece,
        };
        let flit = Flit {
            head: (piece.offset == 0).then_some((self.shared().id, piece.message)),
            digest: piece.is_last().then_some([0; 16]),
            payload: 0..piece.bytes as usize,
        };
        self.handle_flit(now, from, &flit, None)?;
        if let (0, Some(incoming)) = (piece.offset, &mut self.shared_mut().receiving.incoming) {
            incoming.since = since;
        }
        Ok(())
    }

    /// Handles a flit, with its payload unless it is a predicted one.
    fn handle_flit(
        &mut self,
        now: Time,
        from: PeId,
        flit: &Flit,
        payload: Option<&[u8]>,
    ) -> Result<(), ProtocolError> {
        if let Round::List(round) = self {
            round.turn_to(now, from, flit.head.is_some());
        }
        self.shared_mut().handle_flit(now, from, flit, payload)
    }

    /// Returns the number of bytes of incomplete flits at which the driver is to call
    /// [`Round::handle_arriving`], or `None` if it need not.
    pub fn awaits_bytes(&self) -> Option<u64> {
        self.shared().pe.awaits_bytes()
    }

    /// Reports that `bytes` bytes of incomplete flits have arrived.
    pub fn handle_arriving(&mut self, bytes: u64) {
        self.shared_mut().pe.handle_arriving(bytes);
    }

    /// Returns the neighbour whose message is incomplete.
    pub fn awaits_rest_from(&self) -> Option<PeId> {
        let incoming = self.shared().receiving.incoming.as_ref();
        incoming.map(|incoming| incoming.from)
    }

    /// Returns the neighbour whose message has to end before any other frame is accepted.
    pub fn listens_only_to(&self) -> Option<PeId> {
        match self {
            Round::Relay(_) => self.awaits_rest_from(),
            Round::List(_) => None,
        }
    }

    /// Appends the bytes before the payload of the flit to be sent, including the length of its
    /// frame, and hashes the payload.
    pub fn put_prefix(&mut self, now: Time, payload: &[u8], out: &mut Vec<u8>) {
        let shared = self.shared_mut();
        let Some(PendingAction {
            action: Action::SendFlit { piece, .. },
            ..
        }) = shared.given
        else {
            return;
        };
        let (message, is_first) = (piece.message, piece.offset == 0);
        shared.own_hashes.cover(message.id, piece.offset, payload);
        let digest = piece.is_last().then(|| shared.own_hashes.digest());
        let head = is_first.then_some((shared.id, message));
        flit::put_prefix(head, digest.as_ref(), payload.len(), out);
        if let Some(due) = shared.pe.own_due().filter(|_| is_first) {
            shared.observer.started(due, now);
            shared.start.own_start = Some(OwnStart {
                due_ns: due.0,
                began_ns: now.0,
            });
        }
    }

    /// Returns whether a part of a message of this PE was sent and more of it follows.
    pub fn continues(&self, message: MessageId) -> bool {
        self.shared().own_hashes.has_begun(message)
    }

    /// Reports that a message for this PE is durable and visible. This may end the round, or come
    /// after the round was given up.
    pub fn handle_delivered(&mut self, now: Time, message: Message) {
        let shared = self.shared_mut();
        if let Some(arrival) = shared.arrivals.get_mut(&message.id) {
            arrival.delivered = true;
            arrival.delivered_ns = now.0;
            shared.pe.handle_delivered();
        }
    }

    /// Reports that a message made of files is durable and visible, some time after its last byte.
    /// Parts of a message become visible together, after the last of them. `digest` is the digest
    /// of the written files; only one of the parts has it.
    pub fn handle_committed(&mut self, now: Time, message: Message, digest: Option<Digest>) {
        self.handle_delivered(now, message);
        let shared = self.shared_mut();
        if let Some(arrival) = shared.arrivals.get_mut(&message.id) {
            arrival.digest = digest;
        }
        let whole = shared.pe.whole(message.id);
        let is_part = |it: &&Arrival| shared.pe.whole(it.message) == whole;
        let parts = || shared.arrivals.values().filter(is_part);
        if let (Some(arrived_ns), true) = (
            parts().map(|it| it.at_ns).max(),
            parts().all(|it| it.delivered),
        ) {
            let span = [Time(arrived_ns), now];
            let recorder = &mut shared.recorder;
            recorder.keep(Port::Files, message.source, message, span);
        }
    }

    /// Returns the error for stored bytes that differ from the expected ones.
    pub fn unexpected_bytes(&mut self, message: Message) -> ProtocolError {
        let arrival = self.shared_mut().arrivals.get_mut(&message.id);
        let at = arrival.map_or(0, |it| it.bytes_received);
        let what = format!("not the expected bytes in the flit at byte {at}");
        ProtocolError::Damaged { message, what }
    }

    /// Returns the messages for this PE with their progress over all parts.
    pub fn arrivals(&self) -> Vec<Arrival> {
        let whole = |part: &Arrival| Arrival {
            message: self.shared().pe.whole(part.message),
            ..*part
        };
        Arrival::joined(self.shared().arrivals.values().map(whole))
    }

    /// Returns when the PE's own message was due and when it began; `None` if no due time is known,
    /// or before the begin.
    pub fn own_start(&self) -> Option<OwnStart> {
        self.shared().start.own_start
    }

    pub fn late_frames(&self) -> u64 {
        self.shared().late_frames
    }

    /// Returns the number of flits that the PE has received and will send on.
    pub fn held_flits(&self) -> u64 {
        self.shared().held.flits()
    }

    pub fn peak_buffered_flits(&self) -> u64 {
        self.shared().held.peak_flits
    }

    pub fn take_spans(&mut self) -> Vec<Span> {
        self.shared_mut().recorder.take()
    }

    /// Returns the received certificates, order and streams of a gather by certification.
    pub fn take_streams(&mut self) -> Streams {
        std::mem::take(&mut self.shared_mut().streams)
    }
}

#[cfg(test)]
mod tests;
