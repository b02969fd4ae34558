//! A round in which one message at a time passes through the PE: it receives a message completely
//! before the next one, and receives nothing while it sends a message that is here.

use std::ops::ControlFlow;

use super::outgoing::Outgoing;
use super::shared::Shared;
use super::{Action, Observer};
use crate::{PeId, Time};

/// One PE's part of a round in which it relays.
#[derive(Debug)]
pub struct RelayRound<O> {
    pub(super) shared: Shared<O>,
    /// The message that is sent from here.
    outgoing: Option<Outgoing>,
}

impl<O: Observer> RelayRound<O> {
    pub(super) fn new(shared: Shared<O>) -> RelayRound<O> {
        let outgoing = None;
        RelayRound { shared, outgoing }
    }

    /// Returns whether a message of this round is sent or received, so that control items go between
    /// two flits of it.
    pub(super) fn is_in_message(&self) -> bool {
        self.outgoing.is_some() || self.shared.receiving.is_in_message()
    }

    pub(super) fn next(&mut self, now: Time) -> Action {
        loop {
            let of_message = self.shared.poll_in_hand(now);
            let of_message = of_message.or_else(|| self.poll_incoming());
            if let Some(action) = of_message.or_else(|| self.poll_outgoing()) {
                return action;
            }
            match self.shared.poll_transmit(now) {
                ControlFlow::Continue(outgoing) => self.outgoing = Some(outgoing),
                ControlFlow::Break(action) => return action,
            }
        }
    }

    /// Returns the next action for the incoming message if no frame of it is in hand.
    fn poll_incoming(&mut self) -> Option<Action> {
        let incoming = self.shared.receiving.incoming.as_ref()?;
        if incoming.left > 0 {
            let until = self.shared.pe.interjection_timeout();
            let until = until.filter(|_| incoming.counts());
            return Some(Action::Wait { until });
        }
        let from = Some(incoming.from);
        Some(self.shared.poll_end().unwrap_or(Action::Turn { from }))
    }

    /// Returns the next action for the outgoing message; `None` if there is none, or if its next flit
    /// has not arrived yet.
    fn poll_outgoing(&mut self) -> Option<Action> {
        let outgoing = self.outgoing.as_ref()?;
        if let Some(to) = outgoing.next_receiver() {
            return outgoing.next_flit(&self.shared, to, u64::MAX);
        }
        self.shared.own_hashes.end(outgoing.message.id);
        self.shared.pe.handle_sent();
        self.outgoing = None;
        Some(Action::Turn { from: None })
    }

    pub(super) fn sent(&mut self, now: Time, bytes: u64) {
        if let Some(outgoing) = &mut self.outgoing {
            self.shared.sent(now, outgoing, bytes);
        }
    }

    pub(super) fn listens_to(&self, from: PeId) -> bool {
        match &self.shared.receiving.incoming {
            _ if self.outgoing.is_some() => false,
            Some(incoming) => incoming.from == from,
            None => self.shared.pe.listens_to(from),
        }
    }
}
