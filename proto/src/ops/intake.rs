//! What a PE that plays a list is yet to take, from each neighbour in the list's order; and whose is
//! taken now.

use std::collections::{BTreeMap, VecDeque};

use crate::items::Leg;
use crate::{MessageId, PeId};

/// A crossing that is to come, and how many bytes of it are yet to.
#[derive(Debug)]
pub(super) struct Take {
    pub(super) leg: Leg,
    pub(super) left_bytes: u64,
}

/// Which of them may come.
#[derive(Debug)]
pub(super) enum Open {
    /// So many of the first ones: those that were called.
    Called(usize),
    /// The first one.
    First,
    /// The first one, and whatever begins a message and is a flit: there is nothing to wait for.
    FirstOrShort,
    /// The first one of each neighbour; and of each message of which a part is here, how many flits
    /// that is.
    All(BTreeMap<MessageId, u64>),
}

/// Crossings that are to come.
#[derive(Debug)]
pub(super) struct Intake {
    /// By sender, each with its place in the list.
    takes: BTreeMap<PeId, VecDeque<(usize, Take)>>,
    /// The senders in the list's order.
    order: BTreeMap<usize, PeId>,
    open: Open,
}

impl Intake {
    /// These, in their order.
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

    /// Whether nothing is to come any more.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Whether anything is to come from a neighbour.
    pub(super) fn has_more_from(&self, from: PeId) -> bool {
        self.takes.contains_key(&from)
    }

    fn in_order(&self) -> impl Iterator<Item = &Take> {
        self.order.iter().filter_map(|(place, from)| {
            let mut of_sender = self.takes.get(from)?.iter();
            Some(&of_sender.find(|(at, _)| at == place)?.1)
        })
    }

    /// Those that were called.
    pub(super) fn called(&self) -> impl Iterator<Item = &Take> {
        let called = match self.open {
            Open::Called(called) => called,
            _ => 0,
        };
        self.in_order().take(called)
    }

    /// The one that is to be called next, where some are called.
    pub(super) fn next_call(&self) -> Option<&Take> {
        match self.open {
            Open::Called(called) => self.in_order().nth(called),
            _ => None,
        }
    }

    /// It is, and may come now.
    pub(super) fn call(&mut self) -> Option<&Take> {
        if let Open::Called(called) = &mut self.open {
            *called += 1;
        }
        self.called().last()
    }

    /// Whether anything may come from a neighbour now.
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
            // Parts of a message come one after the other, from whomever.
            Open::All(here) => here.get(&leg.message).copied().unwrap_or(0) == leg.offset,
        }
    }

    /// What may come from a neighbour now.
    pub(super) fn open_from(&mut self, from: PeId) -> Option<&mut Take> {
        let is_open = self.is_open_from(from);
        let of_sender = self.takes.get_mut(&from).filter(|_| is_open)?;
        of_sender.front_mut().map(|(_, take)| take)
    }

    /// What came from a neighbour is through.
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
