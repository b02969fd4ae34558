//! A PE in a linear gather, as MPI libraries do it: P0 orders one child after the
//! other, at most `window` of them unanswered. On a star; a baseline to measure
//! against.

use std::collections::VecDeque;

use super::{Brief, Control, Message, Place, Route, Transmit, Violation};
use crate::{PeId, Time};

#[derive(Debug)]
pub(super) struct Linear {
    window: usize,
    own: Option<Message>,
    /// P0: the trigger came; others: the order did.
    begun: bool,
    /// P0: children whose order is yet to go, and those whose message is yet to come.
    to_order: VecDeque<PeId>,
    to_answer: VecDeque<PeId>,
}

impl Linear {
    pub(super) fn new(place: &Place, brief: Brief, window: u32) -> Linear {
        Linear {
            window: window.max(1) as usize,
            own: brief.sends.first().copied(),
            begun: false,
            to_order: place.children_with_messages(&brief).collect(),
            to_answer: VecDeque::new(),
        }
    }

    pub(super) fn trigger(&mut self, _now: Time) {
        self.begun = true;
    }

    pub(super) fn control(
        &mut self,
        place: &Place,
        _now: Time,
        from: PeId,
        item: Control,
    ) -> Result<(), Violation> {
        match item {
            Control::Order { .. } if place.parent() == Some(from) && !self.begun => {
                self.begun = true;
                Ok(())
            }
            _ => {
                let phase = "in a linear gather";
                Err(Violation::UnexpectedControl { from, item, phase })
            }
        }
    }

    pub(super) fn route(
        &mut self,
        place: &Place,
        from: PeId,
        message: &Message,
    ) -> Result<Route, Violation> {
        let message = *message;
        match place.is_root() && message.source == from && message.destination == PeId::ROOT {
            true => Ok(Route::Deliver),
            false => Err(Violation::NoRoute { from, message }),
        }
    }

    pub(super) fn received(&mut self, _from: PeId, _message: &Message) {
        self.to_answer.pop_front();
    }

    pub(super) fn next(&mut self, place: &Place, _now: Time) -> Option<Transmit> {
        if !self.begun {
            return None;
        }
        if let (Some(message), Some(to)) = (self.own, place.parent()) {
            return Some(Transmit::Message { to, message });
        }
        if self.to_answer.len() < self.window
            && let Some(&to) = self.to_order.front()
        {
            let item = Control::Order { after: 1 };
            return Some(Transmit::Control { to, item });
        }
        None
    }

    pub(super) fn sent(&mut self, transmit: &Transmit) {
        match transmit {
            Transmit::Message { .. } => self.own = None,
            Transmit::Control { .. } => self.to_answer.extend(self.to_order.pop_front()),
        }
    }

    pub(super) fn timeout(&self) -> Option<Time> {
        None
    }

    pub(super) fn listens_to(&self, place: &Place, from: PeId) -> bool {
        match place.is_root() {
            true => self.to_answer.front() == Some(&from),
            false => place.parent() == Some(from) && self.own.is_some(),
        }
    }

    pub(super) fn is_over(&self, place: &Place) -> bool {
        (self.begun || !place.is_root())
            && self.own.is_none()
            && self.to_order.is_empty()
            && self.to_answer.is_empty()
    }
}
