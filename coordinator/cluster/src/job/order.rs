//! The requested order of a round's messages, and a better one than farthest first for a scatter
//! (`--order search`). Farthest first is optimal on equal links (spec, section 2); on others it may keep a
//! relay with slow links waiting.
//!
//! The result of the search (`schedule/order_search`), farthest first and the largest tail first are
//! predicted like every round, and the quickest is taken.
//!
//! A lower bound of the duration of a scatter in any order of its messages is that of each port's streams
//! (Jackson's rule, 1955), on the wires alone.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use flitcast_plan::algorithms::gather_order::set_order;
use flitcast_plan::cost::{Model, Ports};
use flitcast_plan::schedule::order_search::{self, Hop};
use flitcast_plan::timing::Timing;
use flitcast_proto::cost::Link;
use flitcast_proto::items::Message;
use flitcast_proto::ops::{Direction, PeSchedule};
use flitcast_proto::round::ProtocolError;
use flitcast_proto::schedule::pace::Pacing;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use flitcast_proto::{PeId, Tree};

use crate::job::decisions::{OrderChoice, ScatterOrder};
use crate::job::planned_round::{PlannedRound, Planner};
use crate::options::order::{GivenOrder, MessageOrder};
use crate::tuning::ORDER_NODES;

/// Returns a lower bound of the duration of a scatter of the same packets in any order.
pub fn bound_of(tree: &Tree, planned: &PlannedRound, model: &Model) -> f64 {
    let schedule = &planned.schedules[tree.root().index()];
    bound(tree, planned, model, |message| {
        let full = u64::from(schedule.flit_bytes_of(message.id));
        let flits = message.bytes.div_ceil(full);
        Cut {
            flits,
            first_bytes: message.bytes.min(full),
            last_bytes: message.bytes - flits.saturating_sub(1) * full,
            is_exact: true,
        }
    })
}

/// Returns the effect of an order of a scatter with a lower bound for any packets of the messages.
pub fn of_any_packets(
    choice: OrderChoice,
    tree: &Tree,
    planned: &PlannedRound,
    model: &Model,
) -> OrderChoice {
    let OrderChoice::Scatter(choice) = choice else {
        return choice;
    };
    let bound_ns = bound(tree, planned, model, |message| Cut {
        flits: message.bytes.div_ceil(MAX_FLIT_BYTES.into()),
        first_bytes: message.bytes.min(MIN_FLIT_BYTES.into()),
        last_bytes: 1,
        is_exact: false,
    });
    OrderChoice::Scatter(ScatterOrder {
        of_any_packets: true,
        ..choice.bounded(bound_ns)
    })
}

/// The flits of a message.
struct Cut {
    flits: u64,
    first_bytes: u64,
    last_bytes: u64,
    /// Whether this is the cut; otherwise it has the least of each number.
    is_exact: bool,
}

/// A message that passes one port after the other.
struct Stream {
    crossings: Vec<Crossing>,
    /// Whether a flit as large as the first precedes the last one.
    has_full_before_last: bool,
}

/// A stream at a port.
struct Crossing {
    /// The port, as the index of its PE, or of the edge if the edge has its own port.
    port: usize,
    /// The PE at the lower end of the edge.
    edge: PeId,
    /// Time for which the stream occupies the port, in nanoseconds.
    takes: f64,
    /// Least time for which its first flit occupies the port, and its last one.
    first: f64,
    last: f64,
    /// The burst of the link, in nanoseconds of the port.
    burst: f64,
    /// Time from a byte's departure to its arrival.
    latency: f64,
}

impl Crossing {
    /// Returns the least time from the start of a flit at the port until the next port can forward
    /// it, if it occupies the port for `flit`.
    fn way(&self, flit: f64) -> f64 {
        self.latency + (flit - self.burst).max(0.0)
    }
}

impl Stream {
    fn new(tree: &Tree, model: &Model, message: &Message, cut: Cut) -> Stream {
        // Each message has one destination.
        let to = message.id.pe();
        let below_root = tree.up_from(to).filter(|pe| *pe != tree.root());
        let crossing = |pe: PeId| {
            let link: &Link = &model.edges[pe.index()].down;
            let port = match (model.ports, tree.parent(pe)) {
                (Ports::Single, Some(parent)) => parent,
                _ => pe,
            };
            Crossing {
                port: port.index(),
                edge: pe,
                takes: link.occupied_ns(cut.flits, message.bytes),
                first: link.occupied_ns(1, cut.first_bytes),
                last: link.occupied_ns(1, cut.last_bytes),
                burst: link.burst_bytes * link.ns_per_byte,
                latency: link.latency_ns,
            }
        };
        let mut crossings: Vec<Crossing> = below_root.map(crossing).collect();
        crossings.reverse();
        Stream {
            crossings,
            has_full_before_last: cut.is_exact && cut.flits > 1,
        }
    }

    /// Returns the least time from the end of the stream at the port of crossing `at` until all of it
    /// has arrived. A source sends the last flit of a message just after a full one; at a relay, the
    /// full one may have left long before.
    fn behind(&self, at: usize) -> f64 {
        let here = &self.crossings[at];
        let [mut full, mut last] = [f64::NEG_INFINITY, here.latency];
        if at == 0 && self.has_full_before_last {
            full = here.latency - here.last;
        }
        for hop in &self.crossings[at + 1..] {
            let sent = full + (hop.first - hop.burst).max(0.0);
            last = last.max(sent) + (hop.last - hop.burst).max(0.0) + hop.latency;
            full = sent + hop.latency;
        }
        last
    }
}

/// All streams through a port.
#[derive(Clone)]
struct Load {
    /// Earliest time at which the first of them can be at the port, in nanoseconds.
    soonest: f64,
    bursts: BTreeMap<PeId, f64>,
    /// For each stream the time for which it occupies the port, and the least time from then to its
    /// arrival.
    streams: Vec<[f64; 2]>,
}

/// Returns a lower bound of the duration of a scatter whose messages are cut in this way, in any order, on the
/// wires alone. At each port the streams start at the earliest of their times and follow each other, the one
/// with the longest remaining way first.
fn bound(tree: &Tree, planned: &PlannedRound, model: &Model, cut: impl Fn(&Message) -> Cut) -> f64 {
    let idle = Load {
        soonest: f64::INFINITY,
        bursts: BTreeMap::new(),
        streams: Vec::new(),
    };
    let mut loads = vec![idle; tree.len()];
    for message in &planned.schedules[tree.root().index()].sends {
        let stream = Stream::new(tree, model, message, cut(message));
        let mut ahead = 0.0;
        for (at, hop) in stream.crossings.iter().enumerate() {
            let load = &mut loads[hop.port];
            load.soonest = load.soonest.min(ahead);
            load.bursts.insert(hop.edge, hop.burst);
            load.streams.push([hop.takes, stream.behind(at)]);
            ahead += hop.way(hop.first);
        }
    }
    let takes = |mut load: Load| {
        let streams = &mut load.streams;
        streams.sort_by(|one, other| other[1].total_cmp(&one[1]));
        let mut sent = 0.0;
        let ends = streams.iter().map(|[takes, behind]| {
            sent += takes;
            sent + behind
        });
        load.soonest + ends.fold(0.0, f64::max) - load.bursts.values().sum::<f64>()
    };
    let busy = loads.into_iter().filter(|load| load.soonest.is_finite());
    busy.map(takes).fold(0.0, f64::max)
}

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
