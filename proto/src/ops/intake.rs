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

    /// What may come from a neighbour now.
    pub(super) fn open_from(&mut self, from: PeId) -> Option<&mut Take> {
        match self {
            Intake::InOrder { takes, open } => {
                let mut open = takes.iter_mut().take(*open);
                open.find(|take| take.leg.from == from)
            }
            Intake::FromAll { takes, here } => {
                let next = takes.get_mut(&from)?.front_mut()?;
                // Parts of a message come one after the other, from whomever.
                let here = here.get(&next.leg.message).copied().unwrap_or(0);
                (next.leg.offset == here).then_some(next)
            }
        }
    }

    /// Whether anything may come from a neighbour now.
    pub(super) fn is_open_from(&self, from: PeId) -> bool {
        match self {
            Intake::InOrder { takes, open } => {
                let mut open = takes.iter().take(*open);
                open.any(|take| take.leg.from == from)
            }
            Intake::FromAll { takes, here } => {
                let next = takes.get(&from).and_then(VecDeque::front);
                next.is_some_and(|next| {
                    let here = here.get(&next.leg.message).copied().unwrap_or(0);
                    next.leg.offset == here
                })
            }
        }
    }

    /// What came from a neighbour is through.
    pub(super) fn through(&mut self, from: PeId, is_called: bool) -> Option<Take> {
        match self {
            Intake::InOrder { takes, open } => {
                let mut among = takes.iter().take(*open);
                let place = among.position(|take| take.leg.from == from)?;
                *open -= usize::from(is_called);
                takes.remove(place)
            }
            Intake::FromAll { takes, here } => {
                let of_sender = takes.get_mut(&from)?;
                let take = of_sender.pop_front()?;
                if of_sender.is_empty() {
                    takes.remove(&from);
                }
                *here.entry(take.leg.message).or_default() += take.leg.flits;
                Some(take)
            }
        }
    }
}
