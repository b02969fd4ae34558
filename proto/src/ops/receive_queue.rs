//! The crossings that a PE with a static schedule is yet to receive, from each neighbour in the
//! schedule's order, and the rule for those that may arrive now.

use std::collections::{BTreeMap, VecDeque};

use crate::items::ScheduledHop;
use crate::{MessageId, PeId};

/// A crossing to be received, with the number of its bytes that are yet to arrive.
#[derive(Debug)]
pub(super) struct PendingReceive {
    pub(super) hop: ScheduledHop,
    pub(super) left_bytes: u64,
}

/// The rule for crossings that may arrive now.
#[derive(Debug)]
pub(super) enum ReceiveRule {
    /// The first crossings, as many as were called.
    Called(usize),
    /// The first crossing.
    First,
    /// The first crossing, and every message of one flit.
    FirstOrShort,
    /// The first crossing of each neighbour that continues its message; for each message, the
    /// number of its flits that are here.
    All(BTreeMap<MessageId, u64>),
}

/// The crossings that are yet to arrive.
#[derive(Debug)]
pub(super) struct ReceiveQueue {
    /// The crossings of each sender with their positions in the schedule.
    receives: BTreeMap<PeId, VecDeque<(usize, PendingReceive)>>,
    /// The senders in the schedule's order.
    order: BTreeMap<usize, PeId>,
    open: ReceiveRule,
}

impl ReceiveQueue {
    /// Creates the queue of these crossings, in their order.
    pub(super) fn new(
        all: impl Iterator<Item = PendingReceive>,
        open: ReceiveRule,
    ) -> ReceiveQueue {
        let mut intake = ReceiveQueue {
            receives: BTreeMap::new(),
            order: BTreeMap::new(),
            open,
        };
        for (place, take) in all.enumerate() {
            intake.order.insert(place, take.hop.from);
            let of_sender = intake.receives.entry(take.hop.from).or_default();
            of_sender.push_back((place, take));
        }
        intake
    }

    /// Returns whether all crossings have arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns whether a crossing from a neighbour is yet to arrive.
    pub(super) fn has_more_from(&self, from: PeId) -> bool {
        self.receives.contains_key(&from)
    }

    fn in_order(&self) -> impl Iterator<Item = &PendingReceive> {
        self.order.iter().filter_map(|(place, from)| {
            let mut of_sender = self.receives.get(from)?.iter();
            Some(&of_sender.find(|(at, _)| at == place)?.1)
        })
    }

    pub(super) fn called(&self) -> impl Iterator<Item = &PendingReceive> {
        let called = match self.open {
            ReceiveRule::Called(called) => called,
            _ => 0,
        };
        self.in_order().take(called)
    }

    /// Returns the crossing to be called next, if crossings are called.
    pub(super) fn next_call(&self) -> Option<&PendingReceive> {
        match self.open {
            ReceiveRule::Called(called) => self.in_order().nth(called),
            _ => None,
        }
    }

    /// Marks the next crossing as called and returns it.
    pub(super) fn call(&mut self) -> Option<&PendingReceive> {
        if let ReceiveRule::Called(called) = &mut self.open {
            *called += 1;
        }
        self.called().last()
    }

    /// Returns whether a crossing from a neighbour may arrive now.
    pub(super) fn is_open_from(&self, from: PeId) -> bool {
        let Some((place, PendingReceive { hop, .. })) =
            self.receives.get(&from).and_then(VecDeque::front)
        else {
            return false;
        };
        let is_first = || self.order.first_key_value() == Some((place, &from));
        match &self.open {
            ReceiveRule::Called(called) => self.order.keys().take(*called).any(|it| it == place),
            ReceiveRule::First => is_first(),
            ReceiveRule::FirstOrShort => (hop.offset, hop.flits) == (0, 1) || is_first(),
            // Parts of a message come one after the other, from any neighbour.
            ReceiveRule::All(here) => here.get(&hop.message).copied().unwrap_or(0) == hop.offset,
        }
    }

    /// Returns the crossing that may arrive from a neighbour now.
    pub(super) fn open_from(&mut self, from: PeId) -> Option<&mut PendingReceive> {
        let is_open = self.is_open_from(from);
        let of_sender = self.receives.get_mut(&from).filter(|_| is_open)?;
        of_sender.front_mut().map(|(_, take)| take)
    }

    /// Removes the first crossing from a neighbour, which is complete.
    pub(super) fn through(&mut self, from: PeId) -> Option<PendingReceive> {
        let of_sender = self.receives.get_mut(&from)?;
        let (place, take) = of_sender.pop_front()?;
        if of_sender.is_empty() {
            self.receives.remove(&from);
        }
        self.order.remove(&place);
        match &mut self.open {
            ReceiveRule::Called(called) => *called -= 1,
            ReceiveRule::First | ReceiveRule::FirstOrShort => {}
            ReceiveRule::All(here) => *here.entry(take.hop.message).or_default() += take.hop.flits,
        }
        Some(take)
    }
}
