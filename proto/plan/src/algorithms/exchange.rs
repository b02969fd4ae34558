//! Total exchange: each PE has a message for each other PE, and all PEs follow a static schedule.

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::ops::{Collective, PeRole};
use flitcast_proto::schedule::flits_of;
use flitcast_proto::{PeId, Tree};

use super::exchange_hosts::{self, rounds, shifts};
use super::lock_step::{LockStep, NotPlanned, rows};
use super::plan_limits::{MOST_HOSTS_OF_ROUNDS, check_crossings};
use super::present::Present;
use super::spec::{
    AlgorithmSpec, AllPorts, BASE, Offer, OfferKind, TreeRequirement, all_others, no_peers,
};
use super::timetable::Timetable;
use super::{blocks, exchange_plan};
use crate::cost::Ports;
use crate::timing::Timing;

/// Rounds of pairs with split messages, optimal at the busiest port.
pub(super) const ROUNDS: AlgorithmSpec = AlgorithmSpec {
    collective: Collective::Exchange,
    name: "rounds",
    offer: Offer::choice(
        &[("rounds", None)],
        "In a complete network, rounds of pairs in which no PE receives two streams at once; the time \
         is what the busiest PE needs to send or to receive",
    ),
    fits: TreeRequirement::Complete,
    gives_orders: true,
    role: PeRole::StaticSchedule,
    peers: all_others,
    hops: |tree, bytes, timing| hops(tree, bytes, timing, |_, flits| rounds(flits)),
    plan: LockStep::List(|task| match task.tree.len() {
        0..=MOST_HOSTS_OF_ROUNDS => Ok(rounds(&task.rows())),
        _ => Err(NotPlanned::Unfit(format!(
            "it is computed for at most {MOST_HOSTS_OF_ROUNDS} PEs"
        ))),
    }),
    bound: |tree, flits| exchange_hosts::least_steps(&rows(tree.len(), flits)),
    ..BASE
};

/// In round k, each PE sends to the PE with a number greater by k.
pub(super) const SHIFTS: AlgorithmSpec = AlgorithmSpec {
    name: "shifts",
    offer: Offer::choice(
        &[("shifts", None)],
        "Baseline: in round k each PE sends to the PE k places after it",
    ),
    plan: LockStep::List(|task| Ok(shifts(&task.rows()))),
    hops: |tree, bytes, timing| hops(tree, bytes, timing, |_, flits| shifts(flits)),
    ..ROUNDS
};

/// All messages at the same time, in an order that the network decides: a baseline.
pub(super) const AT_ONCE: AlgorithmSpec = AlgorithmSpec {
    name: "at-once",
    offer: Offer::other(
        OfferKind::Baseline,
        "Baseline: each PE sends to all others at the same time",
    ),
    plan: LockStep::None,
    gives_orders: false,
    all_ports: AllPorts::Always,
    ..SHIFTS
};

/// Over the edges of the tree only.
pub(super) const TREE: AlgorithmSpec = AlgorithmSpec {
    name: "tree",
    fits: TreeRequirement::Trees,
    offer: Offer::choice(&[("tree", None)], "Over the edges of the tree"),
    plan: LockStep::List(|task| {
        let rows = task.rows();
        check_crossings(exchange_plan::crossings(task.tree, &rows))?;
        Ok(over_tree(task.tree, &rows, task.ports == Ports::PerEdge))
    }),
    peers: no_peers,
    hops: |tree, bytes, timing| {
        hops(tree, bytes, timing, |tree, flits| {
            in_blocks(tree, flits, timing.all_ports)
        })
    },
    all_ports: AllPorts::WithOwnLinks,
    bound: |tree, flits| exchange_plan::least_steps(tree, &rows(tree.len(), flits)),
    ..ROUNDS
};

/// Plans over the edges of a tree.
fn over_tree(tree: &Tree, flits: &[Vec<u64>], all_ports: bool) -> Timetable {
    match all_ports {
        true => exchange_plan::all_ports(tree, flits),
        false => exchange_plan::one_port(tree, flits),
    }
}

/// Plans over the edges of a tree, in blocks of flits if messages are long.
fn in_blocks(tree: &Tree, flits: &[Vec<u64>], all_ports: bool) -> Timetable {
    let block = blocks::of_exchange(tree, flits);
    let row = |row: &Vec<u64>| row.iter().map(|flits| flits.div_ceil(block)).collect();
    let rows: Vec<Vec<u64>> = flits.iter().map(row).collect();
    let plan = over_tree(tree, &rows, all_ports);
    let pes = flits.len();
    let of_message = |message| {
        let [from, to] = exchange_plan::ends(message, pes).map(PeId::index);
        flits[from][to]
    };
    let hops = blocks::in_flits(plan.hops, block, of_message);
    Timetable::of(hops)
}

/// Returns the crossings that a planner computes for the present PEs.
pub(super) fn hops(
    tree: &Tree,
    bytes: &[u64],
    timing: &Timing,
    planned: impl Fn(&Tree, &[Vec<u64>]) -> Timetable,
) -> Vec<ScheduledHop> {
    let present = Present::of(tree);
    let flits = |from: &PeId| {
        let row = &bytes[from.index() * tree.len()..];
        let row = present.pes.iter().map(|to| row[to.index()]);
        row.map(|bytes| flits_of(bytes, timing.flit_bytes()))
            .collect()
    };
    let flits: Vec<Vec<u64>> = present.pes.iter().map(flits).collect();
    let pes = present.pes.len();
    let hops = planned(&present.tree, &flits).hops;
    present.renumbered(hops, timing, |message| {
        let [from, to] = exchange_plan::ends(message, pes).map(|pe| present.who(pe));
        exchange_plan::message(from, to, tree.len())
    })
}
