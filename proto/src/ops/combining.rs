//! A PE that combines messages, as MPI libraries do on binomial trees: it waits until it has all
//! messages of its subtree before it forwards any of them, and holds them meanwhile. A baseline.

use std::collections::VecDeque;

use super::collective::Direction;
use super::pe_schedule::PeSchedule;
use super::role::{PePosition, Role, RouteResult};
use crate::items::{Control, Destination, Message, MessageFault, Route, Transmit};
use crate::{PeId, Time, Tree};

#[derive(Debug)]
pub(super) struct Combining {
    scatters: bool,
    /// The children, largest subtree first: that block was merged last.
    children: Vec<PeId>,
    /// Whether the trigger has arrived (P0), or the token (other PEs, in a gather).
    begun: bool,
    /// Children that are yet to get the token, in a gather.
    pending_tokens: VecDeque<PeId>,
    /// Messages that start here, in order.
    own: VecDeque<Message>,
    /// Messages to be forwarded.
    held: VecDeque<Message>,
    /// Neighbours that send messages, each with the number of messages yet to arrive.
    to_receive: Vec<(PeId, u64)>,
}

/// Returns the children of a PE, largest subtree first.
pub fn largest_first(tree: &Tree, pe: PeId) -> Vec<PeId> {
    let sizes = tree.subtree_sums(|_| 1);
    let mut children = tree.children(pe).to_vec();
    children.sort_by_key(|child| (std::cmp::Reverse(sizes[child.index()]), *child));
    children
}

impl Combining {
    pub(super) fn new(place: &PePosition, schedule: PeSchedule) -> Combining {
        let scatters = schedule.collective.direction() == Direction::Down;
        let to_receive = match scatters {
            true => {
                let parent = place.parent().into_iter();
                parent.map(|pe| (pe, schedule.subtree_messages)).collect()
            }
            false => {
                let children = place.children().iter().copied();
                children
                    .zip(schedule.child_messages.iter().copied())
                    .collect()
            }
        };
        Combining {
            scatters,
            children: largest_first(&place.tree, place.id),
            begun: false,
            pending_tokens: match scatters {
                true => VecDeque::new(),
                false => place.children().iter().copied().collect(),
            },
            own: schedule.sends.into(),
            held: VecDeque::new(),
            to_receive,
        }
    }

    fn left_from(&self, from: PeId) -> u64 {
        let left = self.to_receive.iter().find(|(pe, _)| *pe == from);
        left.map_or(0, |(_, messages)| *messages)
    }

    fn has_all(&self) -> bool {
        self.to_receive.iter().all(|(_, left)| *left == 0)
    }

    /// Returns the held message to send next: the first to arrive in a gather, one of the largest
    /// block in a scatter.
    fn next_held(&self, place: &PePosition) -> Option<&Message> {
        if !self.scatters {
            return self.held.front();
        }
        let block = |message: &Message| {
            let child = place.child_toward(message);
            self.children.iter().position(|&c| Some(c) == child)
        };
        self.held.iter().min_by_key(|message| block(message))
    }
}

impl Role for Combining {
    fn trigger(&mut self, _now: Time) {
        self.begun = true;
    }

    fn control(&mut self, place: &PePosition, _now: Time, from: PeId, item: Control) -> bool {
        let can_begin = !self.scatters && !self.begun && place.parent() == Some(from);
        let begins = item == Control::Token && can_begin;
        self.begun |= begins;
        begins
    }

    fn route(&mut self, place: &PePosition, from: PeId, message: &Message) -> RouteResult {
        if self.left_from(from) == 0 {
            return Err(MessageFault::Overrun);
        }
        if message.is_for(place.id) {
            return Ok(Route::deliver());
        }
        let below = match message.destination {
            Destination::One(pe) if self.scatters => pe,
            _ => message.source,
        };
        match place.tree.child_toward(place.id, below) {
            Some(child) if self.scatters || child == from => {
                self.held.push_back(*message);
                Ok(Route::hold())
            }
            _ => Err(MessageFault::NoRoute),
        }
    }

    fn received(&mut self, from: PeId, _message: &Message) {
        if let Some((_, left)) = self.to_receive.iter_mut().find(|(pe, _)| *pe == from) {
            *left -= 1;
        }
    }

    fn next(&mut self, place: &PePosition, _now: Time) -> Option<Transmit> {
        if !self.begun && (place.is_root() || !self.scatters) {
            return None;
        }
        if let Some(&to) = self.pending_tokens.front() {
            let item = Control::Token;
            return Some(Transmit::Control { to, item });
        }
        if !self.has_all() {
            return None;
        }
        if let Some(&message) = self.own.front().or(self.next_held(place)) {
            let to = match self.scatters {
                true => place.child_toward(&message)?,
                false => place.parent()?,
            };
            return Some(Transmit::message(to, message));
        }
        None
    }

    fn sent(&mut self, transmit: &Transmit) {
        match transmit {
            Transmit::Message { message, .. } | Transmit::Part { message, .. } => {
                if self.own.front() == Some(message) {
                    self.own.pop_front();
                } else {
                    self.held.retain(|held| held != message);
                }
            }
            Transmit::Control { .. } => drop(self.pending_tokens.pop_front()),
        }
    }

    fn listens_to(&self, place: &PePosition, from: PeId) -> bool {
        let waits_for_token = !self.scatters && !self.begun;
        if waits_for_token {
            return place.parent() == Some(from);
        }
        self.left_from(from) > 0
    }

    fn is_over(&self, place: &PePosition) -> bool {
        let begun = self.begun || (self.scatters && !place.is_root());
        begun
            && self.pending_tokens.is_empty()
            && self.own.is_empty()
            && self.has_all()
            && self.held.is_empty()
    }
}
