//! The requested order of a round's messages, and a better one than farthest first for a scatter
//! (`--order search`). Farthest first is optimal on equal links (spec, section 2); on others it may keep a
//! relay with slow links waiting.
//!
//! The result of the search (`schedule/order_search`), farthest first and the largest tail first are
//! predicted like every round, and the quickest is taken.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use flitcast_plan::algorithms::gather_order::set_order;
use flitcast_plan::cost::Model;
use flitcast_plan::schedule::order_search::{self, Hop};
use flitcast_plan::timing::Timing;
use flitcast_proto::ops::{Direction, PeSchedule};
use flitcast_proto::round::ProtocolError;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::{PeId, Tree};

use crate::job::decisions::{OrderChoice, ScatterOrder};
use crate::job::order_bound::bound_of;
use crate::job::planned_round::{PlannedRound, Planner};
use crate::options::order::{GivenOrder, MessageOrder};
use crate::tuning::ORDER_NODES;

/// Predicts a round in the requested order of its messages. It is planned as by default: a scatter with
/// the largest tail first, a gather with each stream as early as it can come.
pub fn ordered(
    planner: &Planner<'_>,
    requested: &MessageOrder,
    planned: PlannedRound,
) -> Result<PlannedRound, ProtocolError> {
    match requested {
        MessageOrder::Tail => Ok(planned),
        MessageOrder::Fdf => {
            let order = farthest_first(planner.tree, &planned);
            let fdf = reordered(planner, &planned, &order)?;
            Ok(fdf.unwrap_or(planned))
        }
        MessageOrder::Search => scatter(planner, None, planned),
        MessageOrder::Given(order) => match planner.operation().collective().direction() {
            Direction::Up => given_gather(planner, order, planned),
            Direction::Down | Direction::Across => scatter(planner, Some(order), planned),
        },
    }
}

/// Returns the indices of messages by decreasing depth of their destinations, whatever links and
/// flits cost.
fn farthest_first(tree: &Tree, planned: &PlannedRound) -> Vec<usize> {
    let sends = &planned.schedules[tree.root().index()].sends;
    let mut order: Vec<usize> = (0..sends.len()).collect();
    order.sort_by_key(|&place| {
        let pe = sends[place].id.pe();
        (Reverse(tree.depth(pe)), pe)
    });
    order
}

/// Predicts a scatter in another order; returns `None` if that is the order it has.
fn reordered(
    planner: &Planner<'_>,
    planned: &PlannedRound,
    order: &[usize],
) -> Result<Option<PlannedRound>, ProtocolError> {
    if order.is_sorted() {
        return Ok(None);
    }
    let mut schedules = planned.schedules.clone();
    reorder(&mut schedules[planner.tree.root().index()], order);
    planner
        .predict(schedules, planned.decisions.clone())
        .map(Some)
}

/// Predicts a scatter in a given order, in which a message that it does not name comes last, or else in the best
/// order found, which may be the order it has.
fn scatter(
    planner: &Planner<'_>,
    given: Option<&GivenOrder>,
    tail_first: PlannedRound,
) -> Result<PlannedRound, ProtocolError> {
    let Planner { tree, model, .. } = *planner;
    let root = &tail_first.schedules[tree.root().index()];
    let bound_ns = bound_of(tree, &tail_first, model);
    let of_order = |order: Vec<usize>| reordered(planner, &tail_first, &order);
    let fdf = of_order(farthest_first(tree, &tail_first))?;
    let found = of_order(match given {
        Some(order) => as_given(order, root),
        None => better(tree, model, root),
    })?;
    let tail_first_ns = tail_first.ns();
    let farthest_first_ns = fdf.as_ref().map_or(tail_first_ns, PlannedRound::ns);
    let best = match given {
        Some(_) => found,
        None => {
            let quickest = fdf.into_iter().chain(found).min_by_key(PlannedRound::ns);
            quickest.filter(|quickest| quickest.ns() < tail_first_ns)
        }
    };
    let mut best = best.unwrap_or(tail_first);
    let choice = ScatterOrder {
        asked: if given.is_some() { "given" } else { "search" },
        predicted_ns: best.ns(),
        tail_first_ns,
        farthest_first_ns,
        bound_ns: 0,
        of_any_packets: false,
        gap_pct: 0.0,
    };
    best.decisions.order = Some(OrderChoice::Scatter(choice.bounded(bound_ns)));
    Ok(best)
}

/// Returns the indices of messages in a given order; a message that it does not name comes last.
fn as_given(order: &GivenOrder, schedule: &PeSchedule) -> Vec<usize> {
    let places: BTreeMap<PeId, usize> = order.pes().iter().copied().zip(0..).collect();
    let mut as_given: Vec<usize> = (0..schedule.sends.len()).collect();
    as_given.sort_by_key(|&place| {
        let place = places.get(&schedule.sends[place].id.pe());
        (place.is_none(), place)
    });
    as_given
}

/// Predicts a gather in which P0 takes the messages in a given order. On a repaired tree that may be
/// impossible; the order stays as it is then.
fn given_gather(
    planner: &Planner<'_>,
    order: &GivenOrder,
    earliest_first: PlannedRound,
) -> Result<PlannedRound, ProtocolError> {
    let mut schedules = earliest_first.schedules.clone();
    if set_order(planner.tree, &mut schedules, order.pes()).is_err() {
        return Ok(earliest_first);
    }
    let mut given = planner.predict(schedules, earliest_first.decisions.clone())?;
    given.decisions.order = Some(OrderChoice::Gather {
        asked: "given",
        predicted_ns: given.ns(),
        earliest_first_ns: earliest_first.ns(),
    });
    Ok(given)
}

/// Puts the messages of a source into this order of their indices.
fn reorder(schedule: &mut PeSchedule, order: &[usize]) {
    schedule.sends = order.iter().map(|&place| schedule.sends[place]).collect();
    if !schedule.packet_bytes.is_empty() {
        let packets = order.iter().map(|&place| schedule.packet_bytes[place]);
        schedule.packet_bytes = packets.collect();
    }
}

/// Returns the indices of messages in the order that the search finds, on links as relays use them.
fn better(tree: &Tree, model: &Model, schedule: &PeSchedule) -> Vec<usize> {
    let full = schedule.flit_bytes;
    let timing = Timing::of(model, full, Pacing::default());
    let hops = tree.ids().map(|pe| {
        let passage = timing.down(pe);
        Hop {
            flit: passage.packet(full.into()).max(1),
            latency: passage.latency,
        }
    });
    let mut flits = vec![0; tree.len()];
    for message in &schedule.sends {
        flits[message.id.pe().index()] = message.bytes.div_ceil(full.into());
    }
    let hops: Vec<Hop> = hops.collect();
    let Some(found) = order_search::search(tree, &flits, &hops, ORDER_NODES) else {
        return (0..schedule.sends.len()).collect();
    };
    let sent = schedule.sends.iter().map(|message| message.id.pe());
    let places: BTreeMap<PeId, usize> = sent.zip(0..).collect();
    let order = found.order.iter();
    order.filter_map(|pe| places.get(pe).copied()).collect()
}

#[cfg(test)]
mod tests;
