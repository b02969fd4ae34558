//! Gossip on a tree: each PE has one message for all others.

use super::listed::Listed;
use super::messages::EACH_TO_OTHERS;
use super::table::{Direction, Entry, Fits, Layout, Word, no_legs};
use crate::schedule::pace::Timing;
use crate::{MessageId, Tree};

/// By a list.
pub(super) const ENTRY: Entry = Entry {
    name: "gossip",
    algorithm: "listed",
    sync: None,
    ways: &[],
    code: 11,
    fits: Fits::Trees,
    gives_orders: false,
    begins_on: Word::Token,
    has_control_ports: false,
    direction: Direction::Down,
    messages: EACH_TO_OTHERS,
    layout: Layout::Shards,
    order,
    legs: no_legs,
    plan: None,
    bound: |_, _| 0,
    role: |place, brief| Box::new(Listed::new(place, brief)),
};

/// The nonnull messages by id, which are those that are owed to anybody.
fn order(tree: &Tree, bytes: &[u64], _timing: &Timing) -> Vec<MessageId> {
    let of_sources = (0..).map(MessageId).zip(bytes.chunks(tree.len()));
    let owed = of_sources.filter(|(_, bytes)| bytes.iter().any(|bytes| *bytes > 0));
    owed.map(|(id, _)| id).collect()
}
