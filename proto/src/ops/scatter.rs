//! A PE in a scatter. P0 sends the messages in their order; the other PEs relay or keep what comes from
//! their parent. Receipts follow upwards.

use std::collections::{BTreeMap, VecDeque};

use super::pe_schedule::PeSchedule;
use super::role::{PePosition, Role, RouteResult};
use crate::items::{Message, MessageFault, Packing, Route, Transmit};
use crate::{PeId, Time};

#[derive(Debug)]
pub(super) struct Scatter {
    /// P0: its only send port, or that of each child.
    ports: Vec<SendPort>,
    /// P0: whether there is a port for each child.
    all_ports: bool,
    /// P0: whether the round has begun.
    triggered: bool,
    /// Number of messages yet to arrive from the parent.
    to_receive: u64,
    /// Whether the PE's own message is yet to arrive.
    own_due: bool,
}

/// A send port of P0.
#[derive(Debug, Default)]
struct SendPort {
    /// The messages left to send, in order.
    messages: VecDeque<Message>,
    /// The child that receives a message, if other ports do not wait for it.
    busy_with: Option<PeId>,
}

impl Scatter {
    pub(super) fn new(place: &PePosition, schedule: PeSchedule) -> Scatter {
        let below: u64 = schedule.child_messages.iter().sum();
        let is_root = place.is_root();
        let mut ports: BTreeMap<Option<PeId>, SendPort> = BTreeMap::new();
        for message in schedule.sends {
            let child = place.child_toward(&message).filter(|_| schedule.all_ports);
            ports.entry(child).or_default().messages.push_back(message);
        }
        Scatter {
            ports: ports.into_values().collect(),
            all_ports: schedule.all_ports,
            triggered: false,
            to_receive: if is_root {
                0
            } else {
                schedule.subtree_messages
            },
            own_due: !is_root && schedule.subtree_messages > below,
        }
    }
}

impl Role for Scatter {
    fn trigger(&mut self, _now: Time) {
        self.triggered = true;
    }

    fn route(&mut self, place: &PePosition, from: PeId, message: &Message) -> RouteResult {
        if message.source != place.tree.root() || Some(from) != place.parent() {
            return Err(MessageFault::NoRoute);
        }
        if message.is_for(place.id) {
            return match std::mem::take(&mut self.own_due) {
                true => Ok(Route::deliver()),
                false => Err(MessageFault::Overrun),
            };
        }
        let child = place.child_toward(message);
        child.map(Route::relay).ok_or(MessageFault::NoRoute)
    }

    fn received(&mut self, _from: PeId, _message: &Message) {
        self.to_receive -= 1;
    }

    fn next(&mut self, place: &PePosition, _now: Time) -> Option<Transmit> {
        if !self.triggered {
            return None;
        }
        let mut free = self
            .ports
            .iter_mut()
            .filter(|port| port.busy_with.is_none());
        let (port, message) = free.find_map(|port| {
            let message = port.messages.pop_front()?;
            Some((port, message))
        })?;
        let to = place.child_toward(&message)?;
        if !self.all_ports {
            return Some(Transmit::message(to, message));
        }
        port.busy_with = Some(to);
        Some(Transmit::Part {
            to,
            message,
            bytes: [0, message.bytes],
            later_from: u64::MAX,
            packing: Packing::Flits,
        })
    }

    fn sent(&mut self, transmit: &Transmit) {
        let Transmit::Part { to, .. } = transmit else {
            return;
        };
        for port in &mut self.ports {
            port.busy_with = port.busy_with.filter(|busy| busy != to);
        }
    }

    fn listens_to(&self, place: &PePosition, from: PeId) -> bool {
        place.parent() == Some(from) && self.to_receive > 0
    }

    fn is_over(&self, place: &PePosition) -> bool {
        let is_sent = self.ports.iter().all(|port| port.messages.is_empty());
        (self.triggered || !place.is_root()) && is_sent && self.to_receive == 0
    }
}
