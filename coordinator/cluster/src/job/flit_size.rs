//! The choice of a flit size, where no option gives one.
//!
//! A relay forwards a flit when it has all of it, so short flits fill a deep tree sooner, and each has
//! its own software costs. The best even split of one stream (paper 003, Lemma 12, solved exactly in
//! `flitcast_plan::packets`) is the start of the search. Each candidate is then predicted in the same
//! way as the round itself, because only that prediction includes shared cores, disks, and concurrent
//! transfers.

use std::sync::Arc;

use flitcast_plan::Algorithm;
use flitcast_plan::algorithms::blocks::MOST_CROSSINGS;
use flitcast_plan::algorithms::{LinkRequirement, TreeRequirement};
use flitcast_plan::cost::Model;
use flitcast_plan::packets::model::{LinkCost, Ticks, best_count};
use flitcast_plan::predict::{self, most_pieces};
use flitcast_proto::Tree;
use flitcast_proto::cost::Link;
use flitcast_proto::ops::{Collective, Direction, PeSchedule};
use flitcast_proto::round::ProtocolError;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::MAX_FLIT_BYTES;

use crate::job::decisions::FlitSize;
use crate::job::order::ordered;
use crate::job::planned_round::{PlannedRound, Planner};
use crate::tuning::{
    CROSSING_NS, FLIT_SIZE_LONGEST_NS, FLIT_SIZE_PART, FLIT_SIZE_UNNOTICED_NS, FLIT_SIZE_WORTH,
    FLIT_SIZE_WORTH_IN_A_STREAM, LEAST_FLIT_BYTES, LISTED_CROSSING_NS, LONG_FLIT_BYTES,
    LONG_FLIT_SENDERS, LONG_MESSAGE_BYTES, NEXT_FLIT_SIZE_RATIO, SEGMENT_FLIT_BYTES,
    SLOW_LINK_RATIO, SWITCHED_FLIT_BYTES, USUAL_FLIT_BYTES,
};

/// The time that the predictions of a search may take.
pub trait SearchTime {
    /// Counts a prediction of `predicted_ns`, for which [`looking_ns`] is `looking_ns`.
    fn predicted(&mut self, predicted_ns: u64, looking_ns: u64);

    /// Returns whether there is time for a prediction that takes `looking_ns` by [`looking_ns`].
    fn has_time_for(&self, looking_ns: u64) -> bool;
}

/// A part of the time that the first prediction predicts. It is counted by estimates, so that a search
/// has the same result on any machine.
#[derive(Default)]
struct PartOfRound {
    /// `None` before the first prediction.
    left_ns: Option<u64>,
}

impl SearchTime for PartOfRound {
    fn predicted(&mut self, predicted_ns: u64, looking_ns: u64) {
        let part_ns = predicted_ns / FLIT_SIZE_PART;
        self.left_ns = Some(match self.left_ns {
            None => part_ns.clamp(FLIT_SIZE_UNNOTICED_NS, FLIT_SIZE_LONGEST_NS),
            Some(left_ns) => left_ns.saturating_sub(looking_ns),
        });
    }

    fn has_time_for(&self, looking_ns: u64) -> bool {
        self.left_ns.is_none_or(|left_ns| looking_ns <= left_ns)
    }
}

/// Plans and predicts a round with the requested flit size, or else with the best one. An order is not
/// searched for.
pub fn plan_with_best_flit_size(planner: &Planner<'_>) -> Result<PlannedRound, ProtocolError> {
    plan_with_best_flit_size_within(planner, &mut PartOfRound::default())
}

/// Plans and predicts a round as [`plan_with_best_flit_size`] does, in the time `search`. The first
/// prediction is always made.
pub fn plan_with_best_flit_size_within(
    planner: &Planner<'_>,
    search: &mut dyn SearchTime,
) -> Result<PlannedRound, ProtocolError> {
    let Planner { tree, model, .. } = *planner;
    let way = &planner.decisions.way;
    let (operation, requested_bytes) = (way.operation, way.flit_bytes);
    let of = |flit_bytes: u32| {
        let one = planner.plan_and_predict(flit_bytes)?;
        ordered(planner, &way.order.before_others(), one)
    };
    let in_turns = operation.gives_orders() && planner.decisions.pacing == Pacing::Turns;
    let usual_bytes = usual_flit(tree, operation, model, planner.bytes);
    let is_broadcast = operation.collective() == Collective::Broadcast;
    let (usual_bytes, most_bytes) = match is_broadcast && in_turns {
        true => (SWITCHED_FLIT_BYTES, SWITCHED_FLIT_BYTES),
        false => (usual_bytes, MAX_FLIT_BYTES),
    };
    let worth = match is_broadcast {
        true => FLIT_SIZE_WORTH_IN_A_STREAM,
        false => FLIT_SIZE_WORTH,
    };
    let first_bytes = requested_bytes.unwrap_or(usual_bytes);
    let usual = of(first_bytes)?;
    let usual_ns = usual.ns();
    let takes = |flit_bytes: u32| looking_ns(tree, &usual.schedules, flit_bytes);
    search.predicted(usual_ns, takes(first_bytes));
    let first = match requested_bytes {
        None if are_slow(tree, operation, model) => {
            best_alone(tree, operation, &usual.schedules, model)
        }
        _ => None,
    };
    let Some(mut first) = first.map(|bytes| bytes.min(most_bytes)) else {
        return Ok(usual);
    };
    while first < usual_bytes && !search.has_time_for(takes(first)) {
        first = (2 * first).min(usual_bytes);
    }
    let within = |flit_bytes: u32| {
        if flit_bytes == usual_bytes || !search.has_time_for(takes(flit_bytes)) {
            return Ok(None);
        }
        let one = of(flit_bytes)?;
        search.predicted(one.ns(), takes(flit_bytes));
        Ok(Some(one))
    };
    let Some(mut best) = best_around(first, most_bytes, within)? else {
        return Ok(usual);
    };
    let predicted_ns = best.ns();
    if predicted_ns as f64 > worth * usual_ns as f64 {
        return Ok(usual);
    }
    best.decisions.flit_size = Some(FlitSize {
        bytes: best.decisions.flit_bytes,
        predicted_ns,
        usual_ns,
        usual_bytes,
    });
    Ok(best)
}

/// Returns the best of this size and the powers of two around it, up to `most`, as far as they gain.
/// `within` plans and predicts with a size if there is time. Returns `None` if there was no time at all.
pub(super) fn best_around(
    first: u32,
    most: u32,
    mut within: impl FnMut(u32) -> Result<Option<PlannedRound>, ProtocolError>,
) -> Result<Option<PlannedRound>, ProtocolError> {
    let Some(mut best) = within(first)? else {
        return Ok(None);
    };
    let shorter = (LEAST_FLIT_BYTES.ilog2()..first.ilog2() + 1)
        .rev()
        .map(|log| 1 << log);
    let longer = (first.ilog2() + 1..=most.ilog2()).map(|log| 1 << log);
    let shorter: Vec<u32> = shorter.filter(|&bytes| bytes < first).collect();
    for sizes in [shorter, longer.collect()] {
        let before = best.decisions.flit_bytes;
        for size in sizes {
            match within(size)? {
                Some(next) if (next.ns() as f64) < NEXT_FLIT_SIZE_RATIO * best.ns() as f64 => {
                    best = next
                }
                _ => break,
            }
        }
        if best.decisions.flit_bytes != before {
            break;
        }
    }
    Ok(Some(best))
}

/// Returns the largest number of edges that a message crosses.
fn hops(tree: &Tree, operation: Algorithm) -> u64 {
    let depth = u64::from(tree.height());
    match (operation.collective().direction(), operation.fits()) {
        // Around the ring, or from one PE to the other.
        (Direction::Across, TreeRequirement::Complete) => tree.count() as u64 - 1,
        (Direction::Across, _) => 2 * depth,
        (_, TreeRequirement::Cubes | TreeRequirement::Complete) => {
            u64::from(tree.count().next_power_of_two().ilog2()) + 1
        }
        _ => depth,
    }
}

/// Returns an upper bound of the time of a prediction with flits of this size.
pub fn looking_ns(tree: &Tree, schedules: &[PeSchedule], flit_bytes: u32) -> u64 {
    // The prediction moves the longest messages in pieces.
    let crossings = |most: u64| -> u64 {
        let pieces = |bytes: u64| bytes.div_ceil(flit_bytes.into()).min(most);
        let takes = schedules.iter().flat_map(|schedule| &schedule.receives);
        let crossings = takes.map(|it| pieces(it.bytes).saturating_mul(predict::hops(tree, it)));
        crossings.fold(0, u64::saturating_add)
    };
    // The blocks of longer lists are planned again for each size. Two PEs have each.
    let listed = match crossings(u64::MAX) > MOST_CROSSINGS {
        true => schedules
            .iter()
            .map(|schedule| schedule.hops.len() as u64 / 2)
            .sum(),
        false => 0,
    };
    let predicted = CROSSING_NS.saturating_mul(crossings(most_pieces(tree, schedules)));
    predicted.saturating_add(LISTED_CROSSING_NS * listed)
}

/// Takes `ns` of the time that is left; returns whether there is as much.
pub(super) fn take_time(left_ns: &mut u64, ns: u64) -> bool {
    let left = left_ns.checked_sub(ns);
    *left_ns = left.unwrap_or(*left_ns);
    left.is_some()
}

/// Returns the largest set-up time, latency and time per byte of all links that messages cross, in
/// nanoseconds.
pub(super) fn dearest(tree: &Tree, operation: Algorithm, model: &Model) -> Link {
    let links = tree.below_root().flat_map(|pe| {
        let edge = &model.edges[pe.index()];
        match operation.collective().direction() {
            Direction::Down => vec![edge.down],
            Direction::Up => vec![edge.up],
            Direction::Across => vec![edge.down, edge.up],
        }
    });
    links.fold(Link::default(), |one, other| Link {
        setup_ns: one.setup_ns.max(other.setup_ns),
        ns_per_byte: one.ns_per_byte.max(other.ns_per_byte),
        latency_ns: one.latency_ns.max(other.latency_ns),
        ..one
    })
}

/// Returns a packet's beta and g: the costs of [`dearest`] and the software costs of a relay.
fn packet_costs(tree: &Tree, operation: Algorithm, model: &Model) -> [f64; 2] {
    let link = dearest(tree, operation, model);
    let host = model.hosts.slowest(MAX_FLIT_BYTES);
    let a_byte = link.ns_per_byte + host.send_ns_per_byte + host.receive_ns_per_byte;
    let a_packet = 2.0 * host.flit_ns + link.occupied_ns(1, model.prefix_bytes);
    [a_packet, a_byte]
}

/// Returns the costs of [`packet_costs`] for flits of `flit_bytes` bytes, in picoseconds.
pub(super) fn link_cost(
    tree: &Tree,
    operation: Algorithm,
    model: &Model,
    flit_bytes: u64,
) -> LinkCost {
    let [a_packet, a_byte] = packet_costs(tree, operation, model);
    let picos = |ns: f64| (ns * 1e3).clamp(1.0, 1e15) as Ticks;
    LinkCost {
        setup: picos(a_packet),
        flit: picos(a_byte * flit_bytes as f64),
    }
}

/// Returns whether links are slower than the software at their ends by the factor [`SLOW_LINK_RATIO`].
pub fn are_slow(tree: &Tree, operation: Algorithm, model: &Model) -> bool {
    let host = model.hosts.slowest(MAX_FLIT_BYTES);
    let software = host.send_ns_per_byte + host.receive_ns_per_byte;
    dearest(tree, operation, model).ns_per_byte >= SLOW_LINK_RATIO * software
}

/// Returns whether an algorithm may be quicker than others on the links of a model.
pub fn may_pay(tree: &Tree, operation: Algorithm, model: &Model) -> bool {
    let software_ns = 2.0 * model.hosts.slowest(MAX_FLIT_BYTES).flit_ns;
    let exceeds_software = |link_ns: f64| link_ns > SLOW_LINK_RATIO * software_ns;
    let dearest = || dearest(tree, operation, model);
    match operation.pays_on() {
        LinkRequirement::Any => true,
        LinkRequirement::Slow => are_slow(tree, operation, model),
        LinkRequirement::SlowOrFar => {
            are_slow(tree, operation, model) || exceeds_software(dearest().latency_ns)
        }
        LinkRequirement::Setup => exceeds_software(dearest().setup_ns),
    }
}

/// Returns the default flit size of messages with these lengths.
pub fn usual_flit(tree: &Tree, operation: Algorithm, model: &Model, bytes: &[u64]) -> u32 {
    let longest = bytes.iter().copied().max().unwrap_or(0);
    if longest <= USUAL_FLIT_BYTES.into() || are_slow(tree, operation, model) {
        return USUAL_FLIT_BYTES;
    }
    let collective = operation.collective();
    let children = || tree.pes().map(|pe| tree.children(pe).len()).max();
    let fits = match collective.direction() {
        Direction::Down => true,
        _ => children() <= Some(LONG_FLIT_SENDERS),
    };
    match fits && longest >= LONG_MESSAGE_BYTES {
        true => LONG_FLIT_BYTES,
        false => SEGMENT_FLIT_BYTES,
    }
}

/// Returns the best flit size for the stream of the busiest port, if it used the tree alone. A hop
/// takes a + g F for each flit of F bytes; for r flits the last hop begins after `r (a + g F) + (hops -
/// 1)(a + g F)`. Returns `None` if there is nothing to send.
pub(super) fn best_alone(
    tree: &Arc<Tree>,
    operation: Algorithm,
    schedules: &[PeSchedule],
    model: &Model,
) -> Option<u32> {
    let stream = |schedule: &PeSchedule| {
        let [sends, takes] = [&schedule.sends, &schedule.receives];
        let bytes = [sends, takes].map(|all| all.iter().map(|message| message.bytes).sum::<u64>());
        bytes[0].max(bytes[1])
    };
    let stream = schedules
        .iter()
        .map(stream)
        .max()
        .filter(|&bytes| bytes > 0)?;
    let [a_flit, a_byte] = packet_costs(tree, operation, model);
    // A femtosecond is fine enough for the quickest byte; a stream has at most 2^64 of them, and a
    // cost is cut off where the products would not fit.
    let femtos = |ns: f64| (ns * 1e6).clamp(0.0, 1e15) as Ticks;
    // Longer streams want the longest flits anyway.
    let stream = stream.min(1 << 40);
    let behind = Ticks::from(hops(tree, operation).saturating_sub(1));
    let flits = best_count(
        femtos(a_flit),
        femtos(a_byte).min(1 << 40) * behind.min(1 << 12),
        stream,
    );
    let size = stream.div_ceil(flits);
    Some(size.clamp(LEAST_FLIT_BYTES, MAX_FLIT_BYTES.into()) as u32)
}

#[cfg(test)]
mod tests;
