//! A PE that plays a static schedule: its part of a list of crossings. It sends the next message
//! of its list as soon as it has that and its send port is free, and takes what the list says
//! comes next. A message that goes on in the step after it came is relayed, and any other is
//! held until its turn. Whole messages only: a piece would be a message of its own.
//!
//! A scatter is played by a list as well, to hold the role against the one that is not.

use std::collections::{BTreeMap, VecDeque};

use smallvec::smallvec;

use super::brief::Brief;
use super::messages::FROM_ROOT;
use super::plan::MessagePlan;
use super::role::{Place, Role};
use super::scatter::{one_by_one, order, plan_farthest_first};
use super::table::{Direction, Entry, Fits, Layout, Word};
use crate::items::{Leg, Message, Route, Transmit, Violation};
use crate::schedule::flits_of;
use crate::schedule::pace::Timing;
use crate::schedule::scatter as rules;
use crate::{MessageId, PeId, Time, Tree};

/// A scatter by a list.
pub(super) const SCATTER: Entry = Entry {
    name: "scatter",
    algorithm: "listed",
    sync: None,
    ways: &[],
    code: 9,
    fits: Fits::Trees,
    gives_orders: false,
    begins_on: Word::Trigger,
    has_control_ports: false,
    direction: Direction::Down,
    messages: FROM_ROOT,
    layout: Layout::ByDestination,
    order,
    legs: scatter_legs,
    plan: Some(plan_farthest_first),
    bound: rules::optimal_steps,
    role: |place, brief| Box::new(Listed::new(place, brief)),
};

/// What crosses each edge in a scatter, and when in lock step.
fn scatter_legs(tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<Leg> {
    let flits = bytes
        .iter()
        .map(|&bytes| flits_of(bytes, timing.flit_bytes()));
    let flits: Vec<u64> = flits.collect();
    let destinations = order(tree, bytes, timing).into_iter().map(MessageId::pe);
    legs_in_order(tree, &flits, &destinations.collect::<Vec<_>>())
}

/// The same where P0 sends in this order.
pub(super) fn legs_in_order(tree: &Tree, flits: &[u64], destinations: &[PeId]) -> Vec<Leg> {
    let messages = one_by_one(tree, flits, destinations);
    let legs = messages.iter().flat_map(|message| legs_of(tree, message));
    let mut legs: Vec<Leg> = legs.collect();
    legs.sort_by_key(|leg| leg.first_step);
    legs
}

/// The crossings of a message that goes from P0 down to its PE without a stop, the last one first.
pub fn legs_of(tree: &Tree, message: &MessagePlan) -> impl Iterator<Item = Leg> {
    let MessagePlan {
        pe,
        flits,
        first_step,
        ..
    } = *message;
    let up = std::iter::successors(Some(pe), |pe| tree.parent(*pe));
    up.filter_map(move |to| {
        Some(Leg {
            message: pe.into(),
            offset: 0,
            flits,
            from: tree.parent(to)?,
            to,
            first_step: first_step + u64::from(tree.depth(to)) - 1,
            every: 1,
        })
    })
}

#[derive(Debug)]
pub(super) struct Listed {
    /// P0: the trigger came. The others begin with what comes to them.
    begun: bool,
    /// In lock step everything goes in its step, and not before.
    lock_step: bool,
    /// What it can send: its own messages, and those that it holds.
    at_hand: BTreeMap<MessageId, Message>,
    /// What it is yet to send, in order.
    sends: VecDeque<Leg>,
    /// What it is yet to take, in order; the first may be under way.
    takes: VecDeque<Leg>,
    /// The first of those is under way.
    taking: bool,
}

impl Listed {
    pub(super) fn new(place: &Place, brief: Brief) -> Listed {
        let (sends, takes) = brief.legs.into_iter().partition(|leg| leg.from == place.id);
        let own = brief.sends.into_iter();
        Listed {
            begun: !place.is_root(),
            lock_step: brief.pace.lock_step,
            at_hand: own.map(|message| (message.id, message)).collect(),
            sends,
            takes,
            taking: false,
        }
    }

    /// The message that goes next, once it is at hand.
    fn ready(&self) -> Option<(Leg, Message)> {
        let leg = self.sends.front().filter(|_| self.begun)?;
        Some((*leg, *self.at_hand.get(&leg.message)?))
    }

    /// When a crossing may begin.
    fn due(&self, leg: &Leg) -> Time {
        match self.lock_step {
            true => Time(leg.first_step - 1),
            false => Time(0),
        }
    }

    /// Where a message goes on to that comes next, if it does so at once.
    fn relayed(&self, take: &Leg) -> Option<PeId> {
        let mut sends = self.sends.iter();
        let send = sends.find(|send| send.message == take.message)?;
        (send.first_step == take.first_step + 1).then_some(send.to)
    }
}

impl Role for Listed {
    fn trigger(&mut self, _now: Time) {
        self.begun = true;
    }

    fn phase(&self) -> &'static str {
        "in a round by a list"
    }

    fn route(&mut self, place: &Place, from: PeId, message: &Message) -> Result<Route, Violation> {
        let message = *message;
        let Some(take) = self.takes.front().copied() else {
            return Err(Violation::Overrun { from, message });
        };
        if take.from != from || take.message != message.id {
            return Err(Violation::OutOfTurn { from, message });
        }
        self.taking = true;
        if message.is_for(place.id) {
            return Ok(Route::deliver());
        }
        match self.relayed(&take) {
            Some(to) => {
                self.sends.pop_front();
                Ok(Route::relay(to))
            }
            None => {
                self.at_hand.insert(message.id, message);
                Ok(Route::hold())
            }
        }
    }

    fn received(&mut self, _from: PeId, _message: &Message) {
        self.takes.pop_front();
        self.taking = false;
    }

    fn next(&mut self, _place: &Place, now: Time) -> Option<Transmit> {
        let (leg, message) = self.ready()?;
        // What is held may still be coming in.
        let is_coming = self.taking && self.takes.front().map(|t| t.message) == Some(leg.message);
        if is_coming || self.due(&leg) > now {
            return None;
        }
        self.sends.pop_front();
        if self.sends.iter().all(|later| later.message != leg.message) {
            self.at_hand.remove(&leg.message);
        }
        Some(Transmit::Message {
            to: smallvec![leg.to],
            message,
        })
    }

    fn timeout(&self) -> Option<Time> {
        self.ready().map(|(leg, _)| self.due(&leg))
    }

    fn listens_to(&self, _place: &Place, from: PeId) -> bool {
        let Some(take) = self.takes.front().filter(|take| take.from == from) else {
            return false;
        };
        // What goes on at once needs the send port.
        let is_next = || self.sends.front().map(|send| send.message) == Some(take.message);
        self.relayed(take).is_none() || is_next()
    }

    fn is_over(&self, _place: &Place) -> bool {
        self.begun && self.sends.is_empty() && self.takes.is_empty()
    }
}
