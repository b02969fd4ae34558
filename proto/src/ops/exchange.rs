//! Total exchange: each PE has a message for each other PE, and all PEs follow a static schedule.

use super::blocks;
use super::listed::Listed;
use super::messages::EACH_TO_EACH;
use super::operation::{AllPorts, Direction, Fits, Layout, Word};
use super::present::Present;
use super::spec::{Entry, by_id, everybody, no_peers};
use super::timetable::Timetable;
use super::{exchange_hosts, exchange_plan};
use crate::items::{Leg, Packing};
use crate::schedule::flits_of;
use crate::schedule::pace::Timing;
use crate::{MessageId, PeId, Tree};

/// Rounds of pairs in a complete network.
pub(super) const ROUNDS: Entry = Entry {
    name: "exchange",
    algorithm: "rounds",
    sync: None,
    ways: &[("rounds", None)],
    code: 12,
    fits: Fits::Complete,
    gives_orders: true,
    begins_on: Word::Clock,
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

/// Total exchange by shifts.
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

/// All messages at the same time: a baseline.
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
        true => legs(tree, bytes, timing, |tree, flits| {
            in_blocks(tree, flits, exchange_plan::all_ports)
        }),
        false => legs(tree, bytes, timing, |tree, flits| {
            in_blocks(tree, flits, exchange_plan::one_port)
        }),
    },
    all_ports: AllPorts::WithOwnLinks,
    bound: |tree, flits| exchange_plan::least_steps(tree, &rows(tree, flits)),
    ..ROUNDS
};

/// Returns the rows of `all` (by delivery), one for each source.
fn rows(tree: &Tree, all: &[u64]) -> Vec<Vec<u64>> {
    all.chunks(tree.len()).map(<[u64]>::to_vec).collect()
}

/// Plans over the edges of a tree, in blocks of flits if messages are long.
fn in_blocks(
    tree: &Tree,
    flits: &[Vec<u64>],
    planned: fn(&Tree, &[Vec<u64>]) -> Timetable,
) -> Timetable {
    let block = blocks::of_exchange(tree, flits);
    let row = |row: &Vec<u64>| row.iter().map(|flits| flits.div_ceil(block)).collect();
    let rows: Vec<Vec<u64>> = flits.iter().map(row).collect();
    let plan = planned(tree, &rows);
    let pes = flits.len();
    let of_message = |message: MessageId| flits[message.index() / pes][message.index() % pes];
    let legs = blocks::in_flits(plan.legs, block, of_message);
    Timetable::of(legs)
}

/// Returns the crossings that a planner computes for the present PEs.
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
        if timing.setup_flits == 0 {
            leg.packing = Packing::Flits;
        }
        let ends = number(leg.message.0, pes as u64).map(|pe| present.pes()[pe as usize]);
        leg.message = exchange_plan::message(ends[0], ends[1], tree.len());
        (leg.from, leg.to) = (present.who(leg.from), present.who(leg.to));
    }
    legs
}
