//! Scatter, farthest destination first, by a static schedule: a comparison with the scatter without one.

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::ops::PeRole;
use flitcast_proto::schedule::flits_of;
use flitcast_proto::{MessageId, PeId, Tree};

use super::algorithm::Algorithm;
use super::farthest_first::{self, one_by_one, order};
use super::spec::{AlgorithmSpec, AllPorts, Offer, OfferKind};
use super::steps::MessagePlan;
use super::timetable::hop;
use crate::timing::Timing;

const SPEC: AlgorithmSpec = AlgorithmSpec {
    name: "listed",
    offer: Offer::other(
        OfferKind::Hidden,
        "The schedule of fdf as a static list of what each PE sends and receives, to compare the two",
    ),
    all_ports: AllPorts::Never,
    role: PeRole::StaticSchedule,
    hops: scatter_hops,
    ..farthest_first::SPEC
};

impl Algorithm {
    /// Scatter, farthest destination first, by a static schedule.
    pub const LISTED_SCATTER: Algorithm = Algorithm::of(&SPEC);
}

/// Returns the crossings of a scatter with their lock-step times.
fn scatter_hops(tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<ScheduledHop> {
    let flits = bytes
        .iter()
        .map(|bytes| flits_of(*bytes, timing.flit_bytes()));
    let flits: Vec<u64> = flits.collect();
    let destinations = order(tree, bytes, timing).into_iter().map(MessageId::pe);
    hops_in_order(tree, &flits, &destinations.collect::<Vec<_>>())
}

/// Returns the crossings of a scatter in which P0 sends to the destinations in this order.
pub(super) fn hops_in_order(
    tree: &Tree,
    flits: &[u64],
    destinations: &[PeId],
) -> Vec<ScheduledHop> {
    let messages = one_by_one(tree, flits, destinations);
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
