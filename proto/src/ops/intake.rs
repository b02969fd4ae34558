//! What a PE that plays a list is yet to take: in the list's order, one thing at a time or those that
//! were called; or from each neighbour in its order, where it takes from all at once.

use std::collections::{BTreeMap, VecDeque};

use crate::items::Leg;
use crate::{MessageId, PeId};

/// A crossing that is to come, and how many bytes of it are yet to.
#[derive(Debug)]
pub(super) struct Take {
    pub(super) leg: Leg,
    pub(super) left_bytes: u64,
}

/// Crossings that are to come.
#[derive(Debug)]
pub(super) enum Intake {
    /// In the list's order, of which so many of the first ones may come now.
    InOrder { takes: VecDeque<Take>, open: usize },
    /// From each neighbour the first of its own, by sender; and of each message of which a part is
    /// here, how many flits that is.
    FromAll {
        takes: BTreeMap<PeId, VecDeque<Take>>,
        here: BTreeMap<MessageId, u64>,
    },
}

impl Intake {
    /// All of them, of which the first `open` may come.
    pub(super) fn in_order(takes: impl Iterator<Item = Take>, open: usize) -> Intake {
        let takes = takes.collect();
        Intake::InOrder { takes, open }
    }

    /// All of them, from all senders at once.
    pub(super) fn from_all(all: impl Iterator<Item = Take>) -> Intake {
        let mut takes: BTreeMap<PeId, VecDeque<Take>> = BTreeMap::new();
        for take in all {
            takes.entry(take.leg.from).or_default().push_back(take);
        }
        let here = BTreeMap::new();
        Intake::FromAll { takes, here }
    }

    /// Whether nothing is to come any more.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Intake::InOrder { takes, .. } => takes.is_empty(),
            Intake::FromAll { takes, .. } => takes.is_empty(),
        }
    }

    /// Those that may come now, and the one that is to be called next, where some are called.
    pub(super) fn next_call(&self) -> Option<(impl Iterator<Item = &Take>, &Take)> {
        match self {
            Intake::InOrder { takes, open } => Some((takes.iter().take(*open), takes.get(*open)?)),
            Intake::FromAll { .. } => None,
        }
    }

    /// The one that is to be called next is, and may come now.
    pub(super) fn call(&mut self) -> Option<&Take> {
        match self {
            Intake::InOrder { takes, open } => {
                *open += 1;
                takes.get(*open - 1)
            }
            Intake::FromAll { .. } => None,
        }
    }

    /// Where what may come from a neighbour now stands: among all, or among its own.
    fn place(&self, from: PeId) -> Option<usize> {
        match self {
            Intake::InOrder { takes, open } => {
                let mut open = takes.iter().take(*open);
                open.position(|take| take.leg.from == from)
            }
            Intake::FromAll { takes, here } => {
                let Leg {
                    message, offset, ..
                } = takes.get(&from)?.front()?.leg;
                // Parts of a message come one after the other, from whomever.
                let here = here.get(&message).copied().unwrap_or(0);
                (offset == here).then_some(0)
            }
        }
    }

    /// Whether anything may come from a neighbour now.
    pub(super) fn is_open_from(&self, from: PeId) -> bool {
        self.place(from).is_some()
    }

    /// What may come from a neighbour now.
    pub(super) fn open_from(&mut self, from: PeId) -> Option<&mut Take> {
        let place = self.place(from)?;
        match self {
            Intake::InOrder { takes, .. } => takes.get_mut(place),
            Intake::FromAll { takes, .. } => takes.get_mut(&from)?.get_mut(place),
        }
    }

    /// What came from a neighbour is through.
    pub(super) fn through(&mut self, from: PeId, is_called: bool) -> Option<Take> {
        let place = self.place(from)?;
        match self {
            Intake::InOrder { takes, open } => {
                *open -= usize::from(is_called);
                takes.remove(place)
            }
            Intake::FromAll { takes, here } => {
                let of_sender = takes.get_mut(&from)?;
                let take = of_sender.remove(place)?;
                if of_sender.is_empty() {
                    takes.remove(&from);
                }
                *here.entry(take.leg.message).or_default() += take.leg.flits;
                Some(take)
            }
        }
    }
}
