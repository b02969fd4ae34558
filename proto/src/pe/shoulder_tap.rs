//! A PE in a gather by Shoulder-Tap (paper 000, section III-A): it is tapped,
//! taps its child, sends its own message when due, and then relays.

use super::{Brief, Control, Message, Pace, Place, Route, Transmit, Violation};
use crate::schedule::{flits_of, shoulder_tap};
use crate::{PeId, Time};

#[derive(Debug)]
pub(super) struct ShoulderTap {
    child: Option<PeId>,
    step: u64,
    own: Option<Message>,
    own_flits: u64,
    /// The call that came: when, and its s.
    called: Option<(Time, u64)>,
    /// The call to the child is yet to go.
    owes_call: bool,
    /// Messages yet to come from the child.
    to_receive: u64,
}

impl ShoulderTap {
    pub(super) fn new(place: &Place, brief: Brief) -> ShoulderTap {
        let child = place.children().first().copied();
        let own = brief.sends.first().copied();
        ShoulderTap {
            child,
            step: brief.pace.step,
            own,
            own_flits: own.map_or(0, |own| flits_of(own.bytes, brief.flit_bytes)),
            called: None,
            owes_call: child.is_some(),
            to_receive: brief.child_messages.iter().sum(),
        }
    }

    pub(super) fn trigger(&mut self, now: Time) {
        self.called = Some((now, 0));
    }

    pub(super) fn control(
        &mut self,
        place: &Place,
        now: Time,
        from: PeId,
        item: Control,
    ) -> Result<(), Violation> {
        let from_parent = place.parent() == Some(from);
        match item {
            Control::Wakeup { after_steps } if from_parent && self.called.is_none() => {
                self.called = Some((now, after_steps));
                Ok(())
            }
            _ => Err(Violation::UnexpectedControl {
                from,
                item,
                phase: "in a Shoulder-Tap gather",
            }),
        }
    }

    pub(super) fn route(
        &mut self,
        place: &Place,
        from: PeId,
        message: &Message,
    ) -> Result<Route, Violation> {
        let message = *message;
        let comes_from_below = Some(from) == self.child
            && place.tree.child_toward(place.id, message.source) == self.child;
        if message.destination != PeId::ROOT || !comes_from_below {
            return Err(Violation::NoRoute { from, message });
        }
        if self.to_receive == 0 {
            return Err(Violation::Overrun { from, message });
        }
        Ok(match place.parent() {
            Some(to) => Route::Relay { to },
            None => Route::Deliver,
        })
    }

    pub(super) fn received(&mut self, _from: PeId, _message: &Message) {
        self.to_receive -= 1;
    }

    fn own_due(&self) -> Option<Time> {
        self.own?;
        self.was_due()
    }

    pub(super) fn was_due(&self) -> Option<Time> {
        let (at, after_steps) = self.called.filter(|_| self.own_flits > 0)?;
        Some(Pace::due(self.step, at, after_steps))
    }

    pub(super) fn next(&mut self, place: &Place, now: Time) -> Option<Transmit> {
        let (_, after_steps) = self.called?;
        if let (true, Some(to)) = (self.owes_call, self.child) {
            let after_steps = match place.is_root() {
                true => shoulder_tap::FIRST_WAKEUP,
                false => shoulder_tap::next_wakeup(after_steps, self.own_flits),
            };
            return Some(Transmit::Control {
                to,
                item: Control::Wakeup { after_steps },
            });
        }
        if let (Some(message), Some(to)) = (self.own, place.parent()) {
            return (self.own_due() <= Some(now)).then_some(Transmit::Message { to, message });
        }
        None
    }

    pub(super) fn sent(&mut self, transmit: &Transmit) {
        match transmit {
            Transmit::Control { .. } => self.owes_call = false,
            Transmit::Message { .. } => self.own = None,
        }
    }

    pub(super) fn timeout(&self) -> Option<Time> {
        self.own_due().filter(|_| !self.owes_call)
    }

    pub(super) fn listens_to(&self, place: &Place, from: PeId) -> bool {
        if place.parent() == Some(from) {
            self.called.is_none()
        } else {
            // Until the own message is out, what the child sends would have to
            // wait here.
            self.called.is_some() && !self.owes_call && self.own.is_none() && self.to_receive > 0
        }
    }

    pub(super) fn is_over(&self, _place: &Place) -> bool {
        self.called.is_some() && !self.owes_call && self.own.is_none() && self.to_receive == 0
    }
}
