//! A PE in a broadcast that forwards each flit to one child after the other, as the token goes. It
//! delivers the message that it forwards. Receipts follow upwards.

use super::pe_schedule::PeSchedule;
use super::role::{PePosition, Role, RouteResult};
use crate::items::{Message, MessageFault, Route, Transmit};
use crate::{PeId, Time};

#[derive(Debug)]
pub(super) struct FlitByFlit {
    /// P0: the message left to send, and whether the round has begun.
    to_send: Option<Message>,
    triggered: bool,
    /// Whether the message is yet to arrive from the parent.
    is_due: bool,
    /// Whether the message ends here, too.
    takes: bool,
    /// Children that get the message, in this order.
    children: Vec<PeId>,
}

impl FlitByFlit {
    pub(super) fn new(place: &PePosition, schedule: PeSchedule) -> FlitByFlit {
        let served: Vec<PeId> = place.children_with_messages(&schedule).collect();
        let token = place.tree.token_broadcast();
        let mut children = token.order(place.id).to_vec();
        children.retain(|child| served.binary_search(child).is_ok());
        FlitByFlit {
            to_send: schedule.sends.first().copied(),
            triggered: false,
            is_due: !place.is_root() && schedule.subtree_messages > 0,
            takes: !schedule.receives.is_empty(),
            children,
        }
    }
}

impl Role for FlitByFlit {
    fn trigger(&mut self, _now: Time) {
        self.triggered = true;
    }

    fn route(&mut self, place: &PePosition, from: PeId, _message: &Message) -> RouteResult {
        if Some(from) != place.parent() {
            return Err(MessageFault::NoRoute);
        }
        Ok(Route {
            deliver: self.takes,
            relay: self.children.as_slice().into(),
            ..Route::default()
        })
    }

    fn received(&mut self, _from: PeId, _message: &Message) {
        self.is_due = false;
    }

    fn next(&mut self, _place: &PePosition, _now: Time) -> Option<Transmit> {
        let message = self.to_send.take_if(|_| self.triggered)?;
        let to = self.children.as_slice().into();
        Some(Transmit::Message { to, message })
    }

    fn listens_to(&self, place: &PePosition, from: PeId) -> bool {
        place.parent() == Some(from) && self.is_due
    }

    fn is_over(&self, place: &PePosition) -> bool {
        (self.triggered || !place.is_root()) && self.to_send.is_none() && !self.is_due
    }
}
