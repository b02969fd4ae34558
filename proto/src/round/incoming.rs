//! Incoming messages: delivered, forwarded, held or dropped, frame by frame.

use super::shared::{Incoming, Shared};
use super::{Action, Observer, Piece, ProtocolError};
use crate::items::{Control, Message, MessageFault, Route};
use crate::spans::Port;
use crate::wire::edge::EdgeFrame;
use crate::wire::flit::Flit;
use crate::{PeId, RoundId, Time};

impl<O: Observer> Shared<O> {
    /// Handles a frame that is not a flit.
    pub(super) fn handle_other(
        &mut self,
        now: Time,
        from: PeId,
        frame: &EdgeFrame,
    ) -> Result<(), ProtocolError> {
        match *frame {
            EdgeFrame::Control { round, item } if round == self.id => {
                self.handle_control([now, now], from, item)
            }
            EdgeFrame::Control { round, .. } if self.is_late(round) => {
                self.receiving.take(from, 0..0);
                self.drop_late();
                Ok(())
            }
            _ => Err(ProtocolError::out_of_place(from, frame, self.id)),
        }
    }

    /// Handles a control item that was received in this time.
    pub(super) fn handle_control(
        &mut self,
        span: [Time; 2],
        from: PeId,
        item: Control,
    ) -> Result<(), ProtocolError> {
        let [_, now] = span;
        self.receiving.take(from, 0..0);
        self.begin();
        self.recorder.keep(Port::Receive, from, item, span);
        self.streams.handle_control(now.0, from, item);
        Ok(self.pe.handle_control(now, from, item)?)
    }

    /// Handles a flit, which begins a message or continues the incoming one, with its payload unless it
    /// is a predicted one.
    pub(super) fn handle_flit(
        &mut self,
        now: Time,
        from: PeId,
        flit: &Flit,
        payload: Option<&[u8]>,
    ) -> Result<(), ProtocolError> {
        if flit.head.is_some() || self.receiving.incoming.is_none() {
            self.handle_head(now, from, flit)?;
        }
        let Some(incoming) = &mut self.receiving.incoming else {
            return Ok(());
        };
        let message = incoming.message;
        let left = flit.rest(incoming.left);
        incoming.left = left.map_err(|fault| fault.by(from, message))?;
        if incoming.left < incoming.later {
            return Err(MessageFault::Overrun.by(from, message).into());
        }
        incoming.digest = flit.digest;
        incoming.is_hashed &= payload.is_some();
        if let (true, Some(payload)) = (incoming.is_hashed, payload) {
            self.receiving.hash.update(payload);
        }
        let (since, leaves) = (incoming.since, incoming.left == 0 && !incoming.ends_here());
        let relays = incoming.route.as_ref().map(Route::relays);
        self.receiving.take(from, flit.payload.clone());
        let Some(relays) = relays else {
            self.drop_late();
            return Ok(());
        };
        let bytes = flit.payload.len() as u64;
        self.streams.handle_flit(now.0, from, bytes);
        if relays {
            self.count_buffers(bytes.div_ceil(self.sizes.flit_bytes.into()));
            if leaves {
                let span = [since, now];
                self.recorder.keep(Port::Receive, from, message, span);
            }
        }
        Ok(())
    }

    /// Handles the first flit of a message.
    fn handle_head(&mut self, now: Time, from: PeId, flit: &Flit) -> Result<(), ProtocolError> {
        if let (Some(_), Some((_, message))) = (&self.receiving.incoming, flit.head) {
            return Err(MessageFault::Interrupted.by(from, message).into());
        }
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
            .get(&message.id)
            .map(|arrival| arrival.bytes_total);
        if ends_here && expected != Some(message.bytes) {
            return Err(ProtocolError::out_of_place(from, &message, self.id));
        }
        if ends_here {
            self.receiving.hash.reset();
        }
        if route.as_ref().is_some_and(|route| route.hold) {
            self.held.begin(message.id);
        }
        let until = route.as_ref().and_then(|route| route.until);
        self.receiving.incoming = Some(Incoming {
            from,
            message,
            route,
            left: message.bytes,
            later: until.map_or(0, |until| message.bytes - until),
            is_hashed: ends_here,
            digest: None,
            is_committed: false,
            since: now,
            relayed: None,
        });
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
                let piece = Piece {
                    message,
                    offset,
                    bytes,
                };
                Action::Forward { from, to, piece }
            }
            None if route.hold && done == stores + route.relay.len() => {
                Action::Hold { from, message }
            }
            None => Action::Drop { from },
        })
    }

    /// Returns the commit of the complete incoming message, or ends the message and returns `None`.
    pub(super) fn poll_end(&mut self) -> Option<Action> {
        let incoming = self.receiving.incoming.as_ref()?;
        let (from, message) = (incoming.from, incoming.message);
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
        None
    }

    /// Handles the end of an action on the frame in hand or on the message that it completes.
    pub(super) fn done_in_hand(&mut self, now: Time, done: &Action) -> Result<(), ProtocolError> {
        let bytes = self.receiving.has_done();
        match *done {
            Action::Store { message, .. } => self.stored(now, message, bytes)?,
            Action::Forward { to, piece, .. } => {
                if let Some(Incoming {
                    left: 0,
                    relayed: Some(since),
                    ..
                }) = self.receiving.incoming
                {
                    let span = [since, now];
                    self.recorder.keep(Port::Send, to, piece.message, span);
                    self.count_buffers(0);
                }
            }
            Action::Hold { message, .. } => {
                self.held.add(message.id, bytes);
                self.count_buffers(0);
                let ended = self.receiving.incoming.as_ref();
                let ended = ended.filter(|it| !it.has_part_left() && !it.ends_here());
                if let Some(Incoming { from, since, .. }) = ended {
                    let span = [*since, now];
                    self.recorder.keep(Port::Receive, *from, message, span);
                }
            }
            Action::Drop { from } => {
                self.receiving.in_hand = None;
                self.pe.handle_taken(from, bytes);
                if self.receiving.is_in_message() {
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
        let ends_part = incoming.is_some_and(|it| !it.has_part_left());
        if let Some(arrival) = self.arrivals.get_mut(&message.id) {
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
}
