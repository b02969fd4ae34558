//! A PE in a scatter. P0 sends the messages farthest destination first; the
//! others relay or keep what comes from their parent. Receipts follow upwards.

use std::collections::VecDeque;

use super::{Brief, Control, Message, Place, Route, Transmit, Violation};
use crate::{PeId, Time};

#[derive(Debug)]
pub(super) struct Scatter {
    /// P0: what is left to send, in order.
    to_send: VecDeque<Message>,
    /// P0: the round has begun.
    triggered: bool,
    /// Messages yet to come from the parent.
    to_receive: u64,
    /// The PE's own message is yet to come.
    own_due: bool,
}

impl Scatter {
    pub(super) fn new(place: &Place, brief: Brief) -> Scatter {
        let below: u64 = brief.child_messages.iter().sum();
        let is_root = place.is_root();
        Scatter {
            to_send: brief.sends.into(),
            triggered: false,
            to_receive: if is_root { 0 } else { brief.subtree_messages },
            own_due: !is_root && brief.subtree_messages > below,
        }
    }

    pub(super) fn trigger(&mut self, _now: Time) {
        self.triggered = true;
    }

    pub(super) fn control(
        &mut self,
        _place: &Place,
        _now: Time,
        from: PeId,
        item: Control,
    ) -> Result<(), Violation> {
        let phase = "in a scatter";
        Err(Violation::UnexpectedControl { from, item, phase })
    }

    pub(super) fn route(
        &mut self,
        place: &Place,
        from: PeId,
        message: &Message,
    ) -> Result<Route, Violation> {
        let message = *message;
        if message.source != PeId::ROOT || Some(from) != place.parent() {
            return Err(Violation::NoRoute { from, message });
        }
        if message.destination == place.id {
            return match std::mem::take(&mut self.own_due) {
                true => Ok(Route::Deliver),
                false => Err(Violation::Overrun { from, message }),
            };
        }
        match place.tree.child_toward(place.id, message.destination) {
            Some(to) => Ok(Route::Relay { to }),
            None => Err(Violation::NoRoute { from, message }),
        }
    }

    pub(super) fn received(&mut self, _from: PeId, _message: &Message) {
        self.to_receive -= 1;
    }

    pub(super) fn next(&mut self, place: &Place, _now: Time) -> Option<Transmit> {
        if !self.triggered {
            return None;
        }
        let message = self.to_send.pop_front()?;
        let to = place.tree.child_toward(place.id, message.destination)?;
        Some(Transmit::Message { to, message })
    }

    pub(super) fn sent(&mut self, _transmit: &Transmit) {}

    pub(super) fn timeout(&self) -> Option<Time> {
        None
    }

    pub(super) fn listens_to(&self, place: &Place, from: PeId) -> bool {
        place.parent() == Some(from) && self.to_receive > 0
    }

    pub(super) fn is_over(&self, place: &Place) -> bool {
        (self.triggered || !place.is_root()) && self.to_send.is_empty() && self.to_receive == 0
    }
}
