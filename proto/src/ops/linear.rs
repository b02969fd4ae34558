//! A PE in a linear gather, as in MPI libraries: P0 orders one child after the other and leaves at
//! most `window` orders unanswered. It works on stars and is a baseline.

use std::collections::VecDeque;

use super::pe_schedule::PeSchedule;
use super::role::{PePosition, Role, RouteResult};
use crate::items::{Control, Message, MessageFault, Route, Transmit};
use crate::{PeId, Time};

#[derive(Debug)]
pub(super) struct Linear {
    window: usize,
    own: Option<Message>,
    /// Whether the trigger has arrived (P0), or the order (other PEs).
    begun: bool,
    /// P0: children whose order is yet to be sent, and children whose message is yet to arrive.
    to_order: VecDeque<PeId>,
    to_answer: VecDeque<PeId>,
}

impl Linear {
    pub(super) fn new(place: &PePosition, schedule: PeSchedule, window: u32) -> Linear {
        Linear {
            window: window.max(1) as usize,
            own: schedule.sends.first().copied(),
            begun: false,
            to_order: place.children_with_messages(&schedule).collect(),
            to_answer: VecDeque::new(),
        }
    }
}

impl Role for Linear {
    fn trigger(&mut self, _now: Time) {
        self.begun = true;
    }

    fn control(&mut self, place: &PePosition, _now: Time, from: PeId, item: Control) -> bool {
        let is_ordered = matches!(item, Control::Order { .. });
        let begins = is_ordered && place.parent() == Some(from) && !self.begun;
        self.begun |= begins;
        begins
    }

    fn route(&mut self, place: &PePosition, from: PeId, message: &Message) -> RouteResult {
        match place.is_root() && message.source == from && message.is_for(place.id) {
            true => Ok(Route::deliver()),
            false => Err(MessageFault::NoRoute),
        }
    }

    fn received(&mut self, _from: PeId, _message: &Message) {
        self.to_answer.pop_front();
    }

    fn next(&mut self, place: &PePosition, _now: Time) -> Option<Transmit> {
        if !self.begun {
            return None;
        }
        if let (Some(message), Some(to)) = (self.own, place.parent()) {
            return Some(Transmit::message(to, message));
        }
        if self.to_answer.len() < self.window
            && let Some(&to) = self.to_order.front()
        {
            let item = Control::Order { after: 1 };
            return Some(Transmit::Control { to, item });
        }
        None
    }

    fn sent(&mut self, transmit: &Transmit) {
        match transmit {
            Transmit::Message { .. } | Transmit::Part { .. } => self.own = None,
            Transmit::Control { .. } => self.to_answer.extend(self.to_order.pop_front()),
        }
    }

    fn listens_to(&self, place: &PePosition, from: PeId) -> bool {
        match place.is_root() {
            true => self.to_answer.front() == Some(&from),
            false => place.parent() == Some(from) && self.own.is_some(),
        }
    }

    fn is_over(&self, place: &PePosition) -> bool {
        (self.begun || !place.is_root())
            && self.own.is_none()
            && self.to_order.is_empty()
            && self.to_answer.is_empty()
    }
}
