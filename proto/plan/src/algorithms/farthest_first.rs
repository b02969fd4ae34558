//! Scatter, farthest destination first.

use std::collections::BTreeMap;

use flitcast_proto::ops::{Collective, PeRole};
use flitcast_proto::{MessageId, PeId, Tree};

use super::algorithm::Algorithm;
use super::lock_step::LockStep;
use super::spec::{AlgorithmSpec, AllPorts, BASE, Offer};
use super::steps::{MessagePlan, Steps, on_its_way};
use crate::schedule::scatter as rules;
use crate::timing::Timing;

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

impl Algorithm {
    /// Scatter, farthest destination first.
    pub const FARTHEST_FIRST: Algorithm = Algorithm::of(&SPEC);
}

/// Returns the messages farthest destination first, as far as edges are equal.
pub(super) fn order(tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<MessageId> {
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
