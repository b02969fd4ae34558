//! The crossings that a PE with a static schedule is yet to receive, from each neighbour in the
//! schedule's order, and the rule for those that may come now.

use std::collections::{BTreeMap, VecDeque};

use crate::items::Leg;
use crate::{MessageId, PeId};

/// A crossing to be received, with the number of its bytes that are yet to come.
#[derive(Debug)]
pub(super) struct Take {
    pub(super) leg: Leg,
    pub(super) left_bytes: u64,
}

/// The rule for crossings that may come now.
#[derive(Debug)]
pub(super) enum Open {
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

/// The crossings that are yet to come.
#[derive(Debug)]
pub(super) struct Intake {
    /// The crossings of each sender with their positions in the schedule.
    takes: BTreeMap<PeId, VecDeque<(usize, Take)>>,
    /// The senders in the schedule's order.
    order: BTreeMap<usize, PeId>,
    open: Open,
}

impl Intake {
    /// Creates the queue of these crossings, in their order.
    pub(super) fn new(all: impl Iterator<Item = Take>, open: Open) -> Intake {
        let mut intake = Intake {
            takes: BTreeMap::new(),
            order: BTreeMap::new(),
            open,
        };
        for (place, take) in all.enumerate() {
            intake.order.insert(place, take.leg.from);
            let of_sender = intake.takes.entry(take.leg.from).or_default();
            of_sender.push_back((place, take));
        }
        intake
    }

    /// Returns whether all crossings have come.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns whether a crossing from a neighbour is yet to come.
    pub(super) fn has_more_from(&self, from: PeId) -> bool {
        self.takes.contains_key(&from)
    }

    fn in_order(&self) -> impl Iterator<Item = &Take> {
        self.order.iter().filter_map(|(place, from)| {
            let mut of_sender = self.takes.get(from)?.iter();
            Some(&of_sender.find(|(at, _)| at == place)?.1)
        })
    }

    pub(super) fn called(&self) -> impl Iterator<Item = &Take> {
        let called = match self.open {
            Open::Called(called) => called,
            _ => 0,
        };
        self.in_order().take(called)
    }

    /// Returns the crossing to be called next, if crossings are called.
    pub(super) fn next_call(&self) -> Option<&Take> {
        match self.open {
            Open::Called(called) => self.in_order().nth(called),
            _ => None,
        }
    }

    /// Marks the next crossing as called and returns it.
    pub(super) fn call(&mut self) -> Option<&Take> {
        if let Open::Called(called) = &mut self.open {
            *called += 1;
        }
        self.called().last()
    }

    /// Returns whether a crossing from a neighbour may come now.
    pub(super) fn is_open_from(&self, from: PeId) -> bool {
        let Some((place, Take { leg, .. })) = self.takes.get(&from).and_then(VecDeque::front)
        else {
            return false;
        };
        let is_first = || self.order.first_key_value() == Some((place, &from));
        match &self.open {
            Open::Called(called) => self.order.keys().take(*called).any(|it| it == place),
            Open::First => is_first(),
            Open::FirstOrShort => (leg.offset, leg.flits) == (0, 1) || is_first(),
            // Parts of a message come one after the other, from any neighbour.
            Open::All(here) => here.get(&leg.message).copied().unwrap_or(0) == leg.offset,
        }
    }

    /// Returns the crossing that may come from a neighbour now.
    pub(super) fn open_from(&mut self, from: PeId) -> Option<&mut Take> {
        let is_open = self.is_open_from(from);
        let of_sender = self.takes.get_mut(&from).filter(|_| is_open)?;
        of_sender.front_mut().map(|(_, take)| take)
    }

    /// Removes the first crossing from a neighbour, which is complete.
    pub(super) fn through(&mut self, from: PeId) -> Option<Take> {
        let of_sender = self.takes.get_mut(&from)?;
        let (place, take) = of_sender.pop_front()?;
        if of_sender.is_empty() {
            self.takes.remove(&from);
        }
        self.order.remove(&place);
        match &mut self.open {
            Open::Called(called) => *called -= 1,
            Open::First | Open::FirstOrShort => {}
            Open::All(here) => *here.entry(take.leg.message).or_default() += take.leg.flits,
        }
        Some(take)
    }
}
