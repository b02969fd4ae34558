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
    to_deliver: u64,
    receipt_due: bool,
    receipts_owed: VecDeque<PeId>,
}

impl Linear {
    pub(super) fn new(place: &Place, brief: Brief, window: u32) -> Linear {
        let is_root = place.is_root();
        let children: VecDeque<PeId> = place.children_with_messages(&brief).collect();
        Linear {
            window: window.max(1) as usize,
            own: brief.sends.first().copied(),
            begun: false,
            to_order: children.clone(),
            to_answer: VecDeque::new(),
            to_deliver: if is_root { brief.subtree_messages } else { 0 },
            receipt_due: !is_root && brief.subtree_messages > 0,
            receipts_owed: children,
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
        let from_parent = place.parent() == Some(from);
        match item {
            Control::Order { .. } if from_parent && !self.begun => self.begun = true,
            Control::Receipt if from_parent && self.begun && self.receipt_due => {
                self.receipt_due = false;
            }
            _ => {
                let phase = "in a linear gather";
                return Err(Violation::UnexpectedControl { from, item, phase });
            }
        }
        Ok(())
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

    pub(super) fn delivered(&mut self) {
        self.to_deliver -= 1;
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
            let item = Control::Order { after_steps: 1 };
            return Some(Transmit::Control { to, item });
        }
        match self.receipts_owed.front() {
            Some(&to) if self.to_deliver == 0 => {
                let item = Control::Receipt;
                Some(Transmit::Control { to, item })
            }
            _ => None,
        }
    }

    pub(super) fn sent(&mut self, transmit: &Transmit) {
        match transmit {
            Transmit::Message { .. } => self.own = None,
            Transmit::Control {
                item: Control::Order { .. },
                ..
            } => self.to_answer.extend(self.to_order.pop_front()),
            Transmit::Control { .. } => drop(self.receipts_owed.pop_front()),
        }
    }

    pub(super) fn timeout(&self) -> Option<Time> {
        None
    }

    pub(super) fn listens_to(&self, place: &Place, from: PeId) -> bool {
        match place.is_root() {
            true => self.to_answer.front() == Some(&from),
            false => place.parent() == Some(from) && self.receipt_due,
        }
    }

    pub(super) fn is_finished(&self, place: &Place) -> bool {
        (self.begun || !place.is_root())
            && self.own.is_none()
            && self.to_order.is_empty()
            && self.to_answer.is_empty()
            && self.to_deliver == 0
            && !self.receipt_due
            && self.receipts_owed.is_empty()
    }
}
