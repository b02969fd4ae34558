//! Total exchange on a tree: each PE has a message for each other one.

use super::listed::Listed;
use super::messages::EACH_TO_EACH;
use super::table::{Direction, Entry, Fits, Layout, Word, by_id, no_legs};

/// By a list.
pub(super) const ENTRY: Entry = Entry {
    name: "exchange",
    algorithm: "rounds",
    sync: None,
    ways: &[],
    code: 12,
    fits: Fits::Trees,
    gives_orders: false,
    begins_on: Word::Token,
    has_control_ports: false,
    direction: Direction::Down,
    messages: EACH_TO_EACH,
    layout: Layout::Pieces,
    order: by_id,
    legs: no_legs,
    plan: None,
    bound: |_, _| 0,
    role: |place, brief| Box::new(Listed::new(place, brief)),
};
