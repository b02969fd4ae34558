//! A PE that plays a static schedule: its part of a list of crossings. It sends what is next in its
//! list as soon as some of it is at hand and its send port is free, flit by flit as these come; and
//! meanwhile it takes what the list says comes next. What it takes and sends on is held until then.
//! Nobody waits for ever: of all crossings that are not over, the one with the first step waits for
//! none of the others.
//!
//! Where all have something to send, they begin when the token comes down the tree, or a message
//! from somebody to whom it came earlier.
//!
//! A scatter is played by a list as well, to hold the role against the one that is not.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::brief::Brief;
use super::messages::FROM_ROOT;
use super::plan::MessagePlan;
use super::role::{Place, Role};
use super::scatter::{one_by_one, order, plan_farthest_first};
use super::table::{self, Direction, Fits, Layout, Word, no_peers};
use crate::items::{Control, Leg, Message, Route, Transmit, Violation};
use crate::schedule::flits_of;
use crate::schedule::pace::Timing;
use crate::schedule::scatter as rules;
use crate::{MessageId, PeId, Time, Tree};

/// A scatter by a list.
pub(super) const SCATTER: table::Entry = table::Entry {
    name: "scatter",
    algorithm: "listed",
    sync: None,
    ways: &[],
    code: 9,
    fits: Fits::Trees,
    gives_orders: false,
    begins_on: Word::Trigger,
    has_control_ports: false,
    is_duplex: true,
    peers: no_peers,
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
    /// It may send: the trigger came, or anything else of the round.
    begun: bool,
    /// The token is yet to come.
    awaits_token: bool,
    /// In lock step everything goes in its step, and not before; and all begin with the first.
    lock_step: bool,
    /// Payload bytes of a full flit.
    flit_bytes: u64,
    /// The children that are yet to get the token.
    untold: VecDeque<PeId>,
    /// What it can send: its own messages, and those that it holds or has a part of.
    at_hand: BTreeMap<MessageId, Message>,
    /// The messages that it is yet to get.
    owed: BTreeSet<MessageId>,
    /// What it is yet to send, in order, and how many crossings of each message that is.
    sends: VecDeque<Leg>,
    sends_of: BTreeMap<MessageId, u64>,
    /// What it is yet to take, in order, and how many crossings come from each neighbour. The
    /// first may be under way.
    takes: VecDeque<Leg>,
    takes_from: BTreeMap<PeId, u64>,
}

impl Listed {
    pub(super) fn new(place: &Place, brief: Brief) -> Listed {
        let lock_step = brief.pace.lock_step;
        let by_token = brief.operation.begins_on() == Word::Token && !lock_step;
        let untold = place.tree.token_broadcast().order(place.id).iter().copied();
        let (sends, takes): (VecDeque<Leg>, VecDeque<Leg>) =
            brief.legs.into_iter().partition(|leg| leg.from == place.id);
        let (mut sends_of, mut takes_from) = (BTreeMap::new(), BTreeMap::new());
        for leg in &sends {
            *sends_of.entry(leg.message).or_default() += 1;
        }
        for leg in &takes {
            *takes_from.entry(leg.from).or_default() += 1;
        }
        let own = brief.sends.into_iter();
        Listed {
            begun: !place.is_root() && !by_token,
            awaits_token: !place.is_root() && by_token,
            lock_step,
            flit_bytes: brief.flit_bytes.into(),
            untold: untold.filter(|_| by_token).collect(),
            at_hand: own.map(|message| (message.id, message)).collect(),
            owed: brief.takes.iter().map(|message| message.id).collect(),
            sends,
            sends_of,
            takes,
            takes_from,
        }
    }

    /// What goes next, once some of it is at hand.
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

    /// Where in a message a crossing begins and ends, in bytes.
    fn bytes(&self, leg: &Leg, message: &Message) -> [u64; 2] {
        let flits = [leg.offset, leg.offset.saturating_add(leg.flits)];
        flits.map(|flits| flits.saturating_mul(self.flit_bytes).min(message.bytes))
    }
}

impl Role for Listed {
    fn trigger(&mut self, _now: Time) {
        self.begun = true;
    }

    fn phase(&self) -> &'static str {
        "in a round by a list"
    }

    fn control(
        &mut self,
        place: &Place,
        _now: Time,
        from: PeId,
        item: Control,
    ) -> Result<(), Violation> {
        if item != Control::Token || !self.awaits_token || place.parent() != Some(from) {
            let phase = self.phase();
            return Err(Violation::UnexpectedControl { from, item, phase });
        }
        self.awaits_token = false;
        self.begun = true;
        Ok(())
    }

    fn route(&mut self, _place: &Place, from: PeId, message: &Message) -> Result<Route, Violation> {
        let message = *message;
        let Some(take) = self.takes.front() else {
            return Err(Violation::Overrun { from, message });
        };
        if take.from != from || take.message != message.id || take.offset > 0 {
            return Err(Violation::OutOfTurn { from, message });
        }
        let [_, until] = self.bytes(take, &message);
        self.at_hand.insert(message.id, message);
        // Somebody has begun.
        self.begun |= self.awaits_token;
        Ok(Route {
            deliver: self.owed.contains(&message.id),
            hold: self.sends_of.contains_key(&message.id),
            until: (until < message.bytes).then_some(until),
            ..Route::default()
        })
    }

    fn next_part(&mut self, from: PeId) -> Option<(Message, u64)> {
        let take = self.takes.front()?;
        let take = Some(take).filter(|take| take.from == from && take.offset > 0)?;
        let message = *self.at_hand.get(&take.message)?;
        let [_, until] = self.bytes(take, &message);
        Some((message, until))
    }

    fn has_more_from(&self, from: PeId) -> bool {
        self.takes_from.contains_key(&from)
    }

    fn received(&mut self, from: PeId, _message: &Message) {
        self.takes.pop_front();
        if let Entry::Occupied(mut left) = self.takes_from.entry(from) {
            *left.get_mut() -= 1;
            if *left.get() == 0 {
                left.remove();
            }
        }
    }

    fn next(&mut self, _place: &Place, now: Time) -> Option<Transmit> {
        if self.begun
            && let Some(to) = self.untold.pop_front()
        {
            let item = Control::Token;
            return Some(Transmit::Control { to, item });
        }
        let (leg, message) = self.ready()?;
        if self.due(&leg) > now {
            return None;
        }
        self.sends.pop_front();
        let mut is_last = false;
        if let Entry::Occupied(mut left) = self.sends_of.entry(leg.message) {
            *left.get_mut() -= 1;
            is_last = *left.get() == 0;
            if is_last {
                left.remove();
            }
        }
        let bytes = self.bytes(&leg, &message);
        Some(Transmit::Part {
            to: leg.to,
            message,
            bytes,
            is_last,
        })
    }

    fn timeout(&self) -> Option<Time> {
        self.ready().map(|(leg, _)| self.due(&leg))
    }

    fn listens_to(&self, place: &Place, from: PeId) -> bool {
        let is_next = self.takes.front().is_some_and(|take| take.from == from);
        is_next || self.awaits_token && place.parent() == Some(from)
    }

    fn is_over(&self, _place: &Place) -> bool {
        let is_done = self.sends.is_empty() && self.takes.is_empty();
        self.begun && !self.awaits_token && self.untold.is_empty() && is_done
    }
}
