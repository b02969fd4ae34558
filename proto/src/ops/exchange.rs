//! Total exchange: each PE has a message for each other one, and all play a list.

use super::listed::Listed;
use super::messages::EACH_TO_EACH;
use super::present::Present;
use super::table::{AllPorts, Direction, Entry, Fits, Layout, Word, by_id, everybody, no_peers};
use super::timetable::Timetable;
use super::{exchange_hosts, exchange_plan};
use crate::items::Leg;
use crate::schedule::flits_of;
use crate::schedule::pace::Timing;
use crate::{PeId, Tree};

/// How to exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exchange {
    /// Rounds of pairs, messages in parts: as long as the busiest port has flits.
    Rounds,
    /// In round k, everybody sends to who is k further.
    Shifts,
    /// Over the edges of the tree alone.
    Tree,
    /// Everybody to everybody at the same time, as those do that leave order to the network.
    AtOnce,
}

/// Rounds of pairs between PEs that all reach each other.
pub(super) const ROUNDS: Entry = Entry {
    name: "exchange",
    algorithm: "rounds",
    sync: None,
    ways: &[("rounds", None)],
    code: 12,
    fits: Fits::Complete,
    gives_orders: true,
    begins_on: Word::Token,
    has_control_ports: false,
    is_duplex: true,
    all_ports: AllPorts::Never,
    peers: everybody,
    direction: Direction::Across,
    messages: EACH_TO_EACH,
    layout: Layout::Pieces,
    order: by_id,
    legs: |tree, bytes, timing| {
        legs(tree, bytes, timing, |_, flits| {
            exchange_hosts::rounds(flits)
        })
    },
    plan: None,
    bound: |tree, flits| exchange_hosts::least_steps(&rows(tree, flits)),
    role: |place, brief| Box::new(Listed::new(place, brief)),
};

/// The same by shifts.
pub(super) const SHIFTS: Entry = Entry {
    algorithm: "shifts",
    ways: &[("shifts", None)],
    code: 13,
    legs: |tree, bytes, timing| {
        legs(tree, bytes, timing, |_, flits| {
            exchange_hosts::shifts(flits)
        })
    },
    ..ROUNDS
};

/// Everything at the same time: to measure against.
pub(super) const AT_ONCE: Entry = Entry {
    algorithm: "at-once",
    ways: &[],
    code: 21,
    gives_orders: false,
    all_ports: AllPorts::Always,
    ..SHIFTS
};

/// Over the edges of the tree.
pub(super) const TREE: Entry = Entry {
    algorithm: "tree",
    fits: Fits::Trees,
    ways: &[("tree", None)],
    code: 14,
    peers: no_peers,
    legs: |tree, bytes, timing| match timing.all_ports {
        true => legs(tree, bytes, timing, exchange_plan::all_ports),
        false => legs(tree, bytes, timing, exchange_plan::one_port),
    },
    all_ports: AllPorts::WithOwnLinks,
    bound: |tree, flits| exchange_plan::least_steps(tree, &rows(tree, flits)),
    ..ROUNDS
};

/// By source, its row of what is given by delivery.
fn rows(tree: &Tree, all: &[u64]) -> Vec<Vec<u64>> {
    all.chunks(tree.len()).map(<[u64]>::to_vec).collect()
}

/// What crosses, as a planner has it for those who are there.
fn legs(
    tree: &Tree,
    bytes: &[u64],
    timing: &Timing,
    planned: impl Fn(&Tree, &[Vec<u64>]) -> Timetable,
) -> Vec<Leg> {
    let present = Present::of(tree);
    let flits = |from: &PeId| {
        let row = &bytes[from.index() * tree.len()..];
        let row = present.pes().iter().map(|to| row[to.index()]);
        row.map(|bytes| flits_of(bytes, timing.flit_bytes()))
            .collect()
    };
    let flits: Vec<Vec<u64>> = present.pes().iter().map(flits).collect();
    let pes = present.pes().len();
    let number = |message: u64, pes: u64| [message / pes, message % pes];
    let mut legs = planned(present.tree(), &flits).legs;
    for leg in &mut legs {
        let ends = number(leg.message.0, pes as u64).map(|pe| present.pes()[pe as usize]);
        leg.message = exchange_plan::message(ends[0], ends[1], tree.len());
        (leg.from, leg.to) = (present.who(leg.from), present.who(leg.to));
    }
    legs
}
