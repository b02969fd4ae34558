//! A PE in a broadcast: P0 has one message for all others. Each flit goes to one child after the
//! other, as the token does, and a PE takes what it passes on. Receipts follow upwards.

use super::brief::Brief;
use super::broadcast_plan::least_steps;
use super::messages::TO_OTHERS;
use super::role::{Place, Role};
use super::table::{Direction, Entry, Fits, Layout, Word, no_legs, no_peers};
use crate::items::{Message, Route, Transmit, Violation};
use crate::schedule::pace::Timing;
use crate::{MessageId, PeId, Time, Tree};

/// Flit after flit, each to the children that have the most below them first.
pub(super) const ROUNDS: Entry = Entry {
    name: "broadcast",
    algorithm: "rounds",
    sync: None,
    ways: &[("rounds", None)],
    code: 10,
    fits: Fits::Trees,
    gives_orders: false,
    begins_on: Word::Trigger,
    has_control_ports: false,
    is_duplex: false,
    peers: no_peers,
    direction: Direction::Down,
    messages: TO_OTHERS,
    layout: Layout::Whole,
    order,
    legs: no_legs,
    plan: None,
    bound: |tree, flits| least_steps(tree, flits.iter().copied().max().unwrap_or(0)),
    role: |place, brief| Box::new(Rounds::new(place, brief)),
};

/// The one message, unless it is null.
fn order(_tree: &Tree, bytes: &[u64], _timing: &Timing) -> Vec<MessageId> {
    let is_owed = bytes.iter().any(|bytes| *bytes > 0);
    is_owed.then_some(MessageId(0)).into_iter().collect()
}

#[derive(Debug)]
struct Rounds {
    /// P0: what is left to send, and whether the round has begun.
    to_send: Option<Message>,
    triggered: bool,
    /// The message is yet to come from the parent.
    is_due: bool,
    /// It ends here, too.
    takes: bool,
    /// Who gets it, in this order.
    children: Vec<PeId>,
}

impl Rounds {
    fn new(place: &Place, brief: Brief) -> Rounds {
        let served: Vec<PeId> = place.children_with_messages(&brief).collect();
        let token = place.tree.token_broadcast();
        let mut children = token.order(place.id).to_vec();
        children.retain(|child| served.binary_search(child).is_ok());
        Rounds {
            to_send: brief.sends.first().copied(),
            triggered: false,
            is_due: !place.is_root() && brief.subtree_messages > 0,
            takes: !brief.takes.is_empty(),
            children,
        }
    }
}

impl Role for Rounds {
    fn trigger(&mut self, _now: Time) {
        self.triggered = true;
    }

    fn phase(&self) -> &'static str {
        "in a broadcast"
    }

    fn route(&mut self, place: &Place, from: PeId, message: &Message) -> Result<Route, Violation> {
        let message = *message;
        if Some(from) != place.parent() {
            return Err(Violation::NoRoute { from, message });
        }
        Ok(Route {
            deliver: self.takes,
            relay: self.children.as_slice().into(),
            ..Route::default()
        })
    }

    fn received(&mut self, _from: PeId, _message: &Message) {
        self.is_due = false;
    }

    fn next(&mut self, _place: &Place, _now: Time) -> Option<Transmit> {
        let message = self.to_send.take_if(|_| self.triggered)?;
        let to = self.children.as_slice().into();
        Some(Transmit::Message { to, message })
    }

    fn listens_to(&self, place: &Place, from: PeId) -> bool {
        place.parent() == Some(from) && self.is_due
    }

    fn is_over(&self, place: &Place) -> bool {
        (self.triggered || !place.is_root()) && self.to_send.is_none() && !self.is_due
    }
}
