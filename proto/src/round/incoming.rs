//! Incoming messages: delivered, forwarded, held or dropped, frame by frame.

use super::receiving::Incoming;
use super::{Action, Observer, ProtocolError, Round, Sized};
use crate::items::{Message, Route, Violation};
use crate::spans::Port;
use crate::wire::edge::EdgeFrame;
use crate::wire::flit::{self, Flit};
use crate::{PeId, RoundId, Time};

impl<O: Observer> Round<O> {
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
        let is_between = self.receiving.incoming.is_some() && !self.is_duplex;
        if is_between || flit::is_flit(body) {
            let flit = flit::parse(body).map_err(wire)?;
            let payload = &body[flit.payload.clone()];
            return self.handle_flit(now, from, &flit, Some(payload));
        }
        let what = EdgeFrame::parse(body).map_err(wire)?;
        self.receiving.take(from, 0..0);
        match what {
            EdgeFrame::Control { round, item } if round == self.id => {
                self.begin();
                let span = [now, now];
                self.recorder.keep(Port::Receive, from, item, span);
                self.streams.handle_control(now.0, from, item);
                Ok(self.pe.handle_control(now, from, item)?)
            }
            EdgeFrame::Control { round, .. } if self.is_late(round) => {
                self.drop_late();
                Ok(())
            }
            other => Err(ProtocolError::out_of_place(from, &other, self.id)),
        }
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
        match frame {
            Sized::Control(item) => {
                self.receiving.take(from, 0..0);
                self.begin();
                let span = [since, now];
                self.recorder.keep(Port::Receive, from, item, span);
                self.streams.handle_control(now.0, from, item);
                Ok(self.pe.handle_control(now, from, item)?)
            }
            Sized::Flits { message, bytes } => {
                self.receiving.turn_to(from);
                let left = self.receiving.bytes_left(message.id);
                let flit = Flit {
                    head: left.is_none().then_some((self.id, message)),
                    digest: (left.unwrap_or(message.bytes) == bytes).then_some([0; 16]),
                    payload: 0..bytes as usize,
                };
                self.handle_flit(now, from, &flit, None)?;
                if let Some(incoming) = &mut self.receiving.incoming
                    && left.is_none()
                {
                    incoming.since = since;
                }
                Ok(())
            }
        }
    }

    /// Handles a flit, with its payload unless it is a predicted one.
    fn handle_flit(
        &mut self,
        now: Time,
        from: PeId,
        flit: &Flit,
        payload: Option<&[u8]>,
    ) -> Result<(), ProtocolError> {
        self.receiving.turn_to(from);
        if let (Some(_), Some((_, message))) = (&self.receiving.incoming, flit.head) {
            return Err(Violation::Interrupted { from, message }.into());
        }
        match (&self.receiving.incoming, flit.head) {
            (Some(_), _) => {}
            (None, None) if self.is_duplex => self.handle_next_part(now, from)?,
            (None, _) => self.handle_head(now, from, flit, payload.is_some())?,
        }
        let Some(incoming) = &mut self.receiving.incoming else {
            return Ok(());
        };
        let message = incoming.message;
        incoming.left = flit.rest(from, message, incoming.left)?;
        if incoming.left < incoming.later {
            return Err(Violation::Overrun { from, message }.into());
        }
        incoming.digest = flit.digest;
        if let (true, Some(payload)) = (incoming.is_hashed, payload) {
            self.receiving.hash.update(payload);
        }
        let since = incoming.since;
        let (is_last, counts) = (incoming.left == 0, incoming.counts());
        let ends_here = incoming.route.as_ref().is_some_and(|it| it.deliver);
        let bytes = flit.payload.len() as u64;
        let passes = incoming.route.as_ref().is_some_and(Route::relays);
        self.receiving.take(from, flit.payload.clone());
        if counts {
            self.streams.handle_flit(now.0, from, bytes);
        }
        match counts {
            false => self.drop_late(),
            true if passes => {
                self.count_buffers(bytes.div_ceil(self.sending.flit_bytes.into()));
                if is_last && !ends_here {
                    let span = [since, now];
                    self.recorder.keep(Port::Receive, from, message, span);
                }
            }
            true => {}
        }
        Ok(())
    }

    fn handle_head(
        &mut self,
        now: Time,
        from: PeId,
        flit: &Flit,
        has_payload: bool,
    ) -> Result<(), ProtocolError> {
        let (message, route) = match flit.head {
            Some((round, message)) if round == self.id => {
                self.begin();
                (message, Some(self.pe.handle_head(from, message)?))
            }
            Some((round, message)) if self.is_late(round) => (message, None),
            Some((round, _)) => {
                let what = format_args!("a message of round {round}");
                return Err(ProtocolError::out_of_place(from, &what, self.id));
            }
            None => {
                let what = "a body flit without a head";
                return Err(ProtocolError::out_of_place(from, &what, self.id));
            }
        };
        let ends_here = route.as_ref().is_some_and(|route| route.deliver);
        let expected = self
            .arrivals
            .of(&message)
            .map(|arrival| arrival.bytes_total);
        if ends_here && expected != Some(message.bytes) {
            return Err(ProtocolError::out_of_place(from, &message, self.id));
        }
        let is_hashed = ends_here && has_payload;
        if is_hashed {
            self.receiving.hash.reset();
        }
        if route.as_ref().is_some_and(|route| route.hold) {
            self.buffers.held.begin(message.id);
        }
        let until = route.as_ref().and_then(|route| route.until);
        self.receiving.incoming = Some(Incoming {
            from,
            message,
            route,
            left: message.bytes,
            later: until.map_or(0, |until| message.bytes - until),
            is_hashed,
            digest: None,
            is_committed: false,
            since: now,
            relayed: None,
        });
        Ok(())
    }

    /// Handles the first flit of a further part of a message.
    fn handle_next_part(&mut self, now: Time, from: PeId) -> Result<(), ProtocolError> {
        let next = self.pe.handle_next_part(from);
        let begun = next.and_then(|(id, until)| Some((self.receiving.paused.remove(&id)?, until)));
        let Some(((mut incoming, hash), until)) = begun else {
            let what = "a body flit without a head";
            return Err(ProtocolError::out_of_place(from, &what, self.id));
        };
        incoming.from = from;
        incoming.later = incoming.message.bytes - until;
        incoming.since = now;
        self.receiving.hash = hash;
        self.receiving.incoming = Some(incoming);
        Ok(())
    }

    fn drop_late(&mut self) {
        self.late_frames += 1;
        self.observer.late();
    }

    /// Returns whether a round is over; there is no round 0.
    fn is_late(&self, round: RoundId) -> bool {
        RoundId(0) < round && round < self.id
    }

    /// Returns the next action for the frame in hand.
    pub(super) fn poll_in_hand(&mut self, now: Time) -> Option<Action> {
        let in_hand = self.receiving.in_hand.as_ref()?;
        let (from, done) = (in_hand.from, in_hand.done);
        if in_hand.payload.is_empty() {
            return Some(Action::Drop { from });
        }
        let Some(Incoming {
            message,
            route: Some(route),
            left,
            relayed,
            ..
        }) = &mut self.receiving.incoming
        else {
            return Some(Action::Drop { from });
        };
        let message = *message;
        let bytes = in_hand.payload.len() as u64;
        let offset = message.bytes - *left - bytes;
        let stores = usize::from(route.deliver);
        Some(match route.relay.get(done.wrapping_sub(stores)) {
            _ if done < stores => Action::Store {
                from,
                message,
                offset,
                payload: in_hand.payload.clone(),
            },
            Some(&to) => {
                relayed.get_or_insert(now);
                Action::Forward {
                    from,
                    to,
                    message,
                    offset,
                    bytes,
                }
            }
            None if route.hold && done == stores + route.relay.len() => {
                Action::Hold { from, message }
            }
            None => Action::Drop { from },
        })
    }

    /// Returns the next action for the current message if no frame of it is in hand; `None` if
    /// there is no message or no action.
    pub(super) fn poll_incoming(&mut self) -> Option<Action> {
        let incoming = self.receiving.incoming.as_ref()?;
        if incoming.left > incoming.later {
            if self.is_duplex {
                return None;
            }
            let until = self.pe.interjection_timeout();
            let until = until.filter(|_| incoming.counts());
            return Some(Action::Wait { until });
        }
        let (from, message) = (incoming.from, incoming.message);
        if incoming.later > 0 {
            self.pe.handle_received(from);
            self.receiving.pause();
            return None;
        }
        if let Some(route) = &incoming.route {
            if route.deliver && !incoming.is_committed {
                return Some(Action::Commit { message });
            }
            let relays = route.relays();
            self.pe.handle_received(from);
            if relays {
                self.pe.handle_sent();
            }
        }
        self.receiving.incoming = None;
        // If PEs send and receive at the same time, no other frame had to wait.
        (!self.is_duplex).then_some(Action::Turn { from: Some(from) })
    }

    /// Handles the end of an action on the frame in hand or on the message that it completes.
    pub(super) fn done_in_hand(&mut self, now: Time, done: &Action) -> Result<(), ProtocolError> {
        let bytes = self.receiving.in_hand.as_mut().map_or(0, |in_hand| {
            in_hand.done += 1;
            in_hand.payload.len() as u64
        });
        match *done {
            Action::Store { message, .. } => self.stored(now, message, bytes)?,
            Action::Forward { to, message, .. } => {
                if let Some(Incoming {
                    left: 0,
                    relayed: Some(since),
                    ..
                }) = self.receiving.incoming
                {
                    self.recorder.keep(Port::Send, to, message, [since, now]);
                    self.count_buffers(0);
                }
            }
            Action::Hold { message, .. } => {
                self.buffers.held.add(message.id, bytes);
                self.count_buffers(0);
                let ended = self
                    .receiving
                    .incoming
                    .as_ref()
                    .filter(|it| it.left == it.later);
                let ended = ended.filter(|it| it.route.as_ref().is_some_and(|it| !it.deliver));
                if let Some(Incoming { from, since, .. }) = ended {
                    let span = [*since, now];
                    self.recorder.keep(Port::Receive, *from, message, span);
                }
            }
            Action::Drop { from } => {
                self.receiving.in_hand = None;
                if self.is_duplex {
                    self.pe.handle_taken(from, bytes);
                } else if self
                    .receiving
                    .incoming
                    .as_ref()
                    .is_some_and(Incoming::counts)
                {
                    self.pe.handle_progress(now, bytes);
                }
            }
            Action::Commit { .. } => {
                if let Some(incoming) = &mut self.receiving.incoming {
                    incoming.is_committed = true;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Handles the end of a store: counts the bytes of a message for this PE and verifies the
    /// complete message.
    fn stored(&mut self, now: Time, message: Message, bytes: u64) -> Result<(), ProtocolError> {
        self.observer.moved(bytes);
        let incoming = self.receiving.incoming.as_ref();
        let is_last = incoming.is_some_and(|it| it.left == 0);
        let ends_part = incoming.is_some_and(|it| it.left == it.later);
        if let Some(arrival) = self.arrivals.of(&message) {
            arrival.bytes_received += bytes;
            if is_last {
                arrival.at_ns = now.0;
            }
        }
        let Some(incoming) = self.receiving.incoming.as_ref().filter(|_| ends_part) else {
            return Ok(());
        };
        let (from, since) = (incoming.from, incoming.since);
        let is_hashed = incoming.is_hashed && is_last;
        let ours = is_hashed.then(|| self.receiving.hash.digest());
        let theirs = incoming.digest;
        self.recorder
            .keep(Port::Receive, from, message, [since, now]);
        let Some(ours) = ours.filter(|ours| Some(*ours) != theirs) else {
            return Ok(());
        };
        let shown = |digest| format!("{:032x}", u128::from_be_bytes(digest));
        let theirs = theirs.map_or("none".to_owned(), shown);
        let what = format!("its digest is {}, its source's {theirs}", shown(ours));
        Err(ProtocolError::Damaged { message, what })
    }

    /// Returns the error for stored bytes that differ from the expected ones.
    pub fn unexpected_bytes(&mut self, message: Message) -> ProtocolError {
        let at = self.arrivals.of(&message).map_or(0, |it| it.bytes_received);
        let what = format!("not the expected bytes in the flit at byte {at}");
        ProtocolError::Damaged { message, what }
    }
}
