//! Scatter, farthest destination first; also by a static schedule, to compare the two.

use std::collections::BTreeMap;

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::ops::{Collective, PeRole};
use flitcast_proto::schedule::flits_of;
use flitcast_proto::{MessageId, PeId, Tree};

use super::lock_step::{LockStep, MessagePlan, Steps, on_its_way};
use super::spec::{AlgorithmSpec, AllPorts, BASE, Offer, OfferKind};
use super::timetable::hop;
use crate::schedule::scatter as rules;
use crate::timing::Timing;

/// Scatter, farthest destination first.
pub(super) const SPEC: AlgorithmSpec = AlgorithmSpec {
    collective: Collective::Scatter,
    name: "fdf",
    offer: Offer::choice(
        &[("fdf", None)],
        "Farthest destination first: works on any tree, and no order is faster",
    ),
    all_ports: AllPorts::WithOwnLinks,
    role: PeRole::Scatter,
    order,
    plan: LockStep::Messages(|tree, flits| Steps {
        messages: one_by_one(tree, flits, &rules::farthest_first(tree, flits)),
        control: Vec::new(),
    }),
    bound: rules::optimal_steps,
    ..BASE
};

/// Scatter, farthest destination first, by a static schedule.
pub(super) const LISTED: AlgorithmSpec = AlgorithmSpec {
    name: "listed",
    offer: Offer::other(
        OfferKind::Hidden,
        "The schedule of fdf as a static list of what each PE sends and receives, to compare the two",
    ),
    all_ports: AllPorts::Never,
    role: PeRole::StaticSchedule,
    hops,
    ..SPEC
};

/// Returns the messages farthest destination first, as far as edges are equal.
fn order(tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<MessageId> {
    let order = rules::decreasing_tail(tree, bytes, timing);
    order.into_iter().map(MessageId::from).collect()
}

/// Plans a scatter in which P0 has a port for each child: the nonnull messages of each branch,
/// farthest destination first. This is optimal.
pub fn plan_scatter_by_branch(tree: &Tree, flits: &[u64]) -> Vec<MessagePlan> {
    let branches = branches(tree);
    let mut orders: BTreeMap<PeId, Vec<PeId>> = BTreeMap::new();
    for pe in rules::farthest_first(tree, flits) {
        orders.entry(branches[pe.index()]).or_default().push(pe);
    }
    let branches = orders.values();
    branches
        .flat_map(|order| one_by_one(tree, flits, order))
        .collect()
}

/// Returns for each PE the neighbour of P0 above it.
pub(super) fn branches(tree: &Tree) -> Vec<PeId> {
    let mut branches = vec![tree.root(); tree.len()];
    for &pe in tree.top_down() {
        branches[pe.index()] = match tree.parent(pe) {
            Some(parent) if parent != tree.root() => branches[parent.index()],
            _ => pe,
        };
    }
    branches
}

/// Returns when messages cross that P0 sends in this order, without a gap.
pub(super) fn one_by_one(tree: &Tree, flits: &[u64], order: &[PeId]) -> Vec<MessagePlan> {
    let mut sent = 0;
    let message = |&pe: &PeId| {
        let (flits, first_step) = (flits[pe.index()], sent + 1);
        sent += flits;
        on_its_way(tree, pe, flits, first_step)
    };
    order.iter().map(message).collect()
}

/// Returns the crossings of a scatter with their lock-step times.
fn hops(tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<ScheduledHop> {
    let flits = bytes
        .iter()
        .map(|bytes| flits_of(*bytes, timing.flit_bytes()));
    let flits: Vec<u64> = flits.collect();
    let messages = one_by_one(tree, &flits, &rules::decreasing_tail(tree, bytes, timing));
    let hops = messages.iter().flat_map(|message| hops_of(tree, message));
    let mut hops: Vec<ScheduledHop> = hops.collect();
    hops.sort_by_key(|hop| hop.first_step);
    hops
}

/// Returns the crossings of a message that goes from P0 down to its PE without a stop, the last one
/// first.
pub fn hops_of(tree: &Tree, message: &MessagePlan) -> impl Iterator<Item = ScheduledHop> {
    let plan = *message;
    tree.up_from(plan.pe).filter_map(move |to| {
        let first_step = plan.first_step + u64::from(tree.depth(to)) - 1;
        let ends = [tree.parent(to)?, to];
        Some(hop(plan.pe.into(), ends, [0, plan.flits], first_step))
    })
}
