//! A PE in a gather by Shoulder-Tap (paper 000, section III-A): it receives a wakeup call, calls
//! its child, sends its own message when due, and then relays.

use super::pe_schedule::PeSchedule;
use super::role::{PePosition, Role, RouteResult};
use crate::items::{Control, Message, MessageFault, Transmit};
use crate::schedule::pace::{Pace, Pacing, Packets};
use crate::schedule::shoulder_tap as rules;
use crate::{PeId, Time};

#[derive(Debug)]
pub(super) struct ShoulderTap {
    is_root: bool,
    child: Option<PeId>,
    pace: Pace,
    own: Option<Message>,
    packets: Packets,
    /// The time of the call's arrival, and its s.
    called: Option<(Time, u64)>,
    /// Whether the call to the child is yet to be sent.
    call_pending: bool,
    /// Number of bytes of the own message after which the call is sent.
    call_mark: u64,
    /// Number of bytes of the own message that were sent.
    sent_bytes: u64,
    /// Number of messages yet to arrive from the child.
    to_receive: u64,
}

impl ShoulderTap {
    pub(super) fn new(place: &PePosition, schedule: PeSchedule) -> ShoulderTap {
        let child = place.children().first().copied();
        let own = schedule.sends.first().copied();
        let packets = schedule.own_packets();
        let call_mark = match schedule.pace.pacing {
            Pacing::Turns => rules::call_mark(&schedule.pace, packets),
            Pacing::Scheduled | Pacing::Eager => 0,
        };
        ShoulderTap {
            is_root: place.is_root(),
            child,
            pace: schedule.pace,
            own,
            packets,
            called: None,
            call_pending: child.is_some(),
            call_mark,
            sent_bytes: 0,
            to_receive: schedule.child_messages.iter().sum(),
        }
    }

    fn own_due(&self) -> Option<Time> {
        self.own?;
        self.was_due()
    }

    /// Returns the call to the child, if it is sent now.
    fn call(&self) -> Option<(PeId, Control)> {
        let (_, s) = self.called?;
        let child = self.child?;
        let due = self.call_pending && self.sent_bytes >= self.call_mark;
        let after = match self.pace.pacing {
            Pacing::Scheduled if self.is_root => rules::FIRST_WAKEUP,
            Pacing::Scheduled => rules::next_wakeup(&self.pace, s, self.packets),
            Pacing::Turns | Pacing::Eager => rules::FIRST_WAKEUP,
        };
        due.then_some((child, Control::Wakeup { after }))
    }
}

impl Role for ShoulderTap {
    fn trigger(&mut self, now: Time) {
        self.called = Some((now, 0));
    }

    fn control(&mut self, place: &PePosition, now: Time, from: PeId, item: Control) -> bool {
        let from_parent = place.parent() == Some(from);
        match item {
            Control::Wakeup { after } if from_parent && self.called.is_none() => {
                self.called = Some((now, after));
                true
            }
            _ => false,
        }
    }

    fn route(&mut self, place: &PePosition, from: PeId, message: &Message) -> RouteResult {
        let route = place.route_up(from, message)?;
        match self.to_receive {
            0 => Err(MessageFault::Overrun),
            _ => Ok(route),
        }
    }

    fn received(&mut self, _from: PeId, _message: &Message) {
        self.to_receive -= 1;
    }

    fn was_due(&self) -> Option<Time> {
        let (Time(at), after) = self.called.filter(|_| self.packets.bytes > 0)?;
        let wait = after.saturating_sub(self.pace.up.first_packet(self.packets.first));
        Some(Time(at.saturating_add(wait)))
    }

    fn progress(&mut self, _now: Time, bytes: u64) {
        if self.own.is_some() {
            self.sent_bytes += bytes;
        }
    }

    fn interjection(&mut self, _now: Time) -> Option<(PeId, Control)> {
        let call = self.call()?;
        self.call_pending = false;
        Some(call)
    }

    fn next(&mut self, place: &PePosition, now: Time) -> Option<Transmit> {
        self.called?;
        if let Some((to, item)) = self.call() {
            return Some(Transmit::Control { to, item });
        }
        if let (Some(message), Some(to)) = (self.own, place.parent()) {
            return (self.own_due() <= Some(now)).then_some(Transmit::message(to, message));
        }
        None
    }

    fn sent(&mut self, transmit: &Transmit) {
        match transmit {
            Transmit::Control { .. } => self.call_pending = false,
            Transmit::Message { .. } | Transmit::Part { .. } => self.own = None,
        }
    }

    fn timeout(&self) -> Option<Time> {
        self.own_due().filter(|_| self.call().is_none())
    }

    fn listens_to(&self, place: &PePosition, from: PeId) -> bool {
        if place.parent() == Some(from) {
            self.called.is_none()
        } else {
            // Until the own message is sent, the child's messages would have to wait here.
            self.called.is_some() && !self.call_pending && self.own.is_none() && self.to_receive > 0
        }
    }

    fn is_over(&self, _place: &PePosition) -> bool {
        self.called.is_some() && !self.call_pending && self.own.is_none() && self.to_receive == 0
    }
}
