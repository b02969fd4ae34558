//! A better order of a scatter's messages than farthest first (`--order search`). Farthest first is
//! optimal on equal links (spec, section 2); on others it may keep a relay with slow links waiting.
//!
//! The result of the search (`schedule/order_search`) is predicted like every round. The lower
//! bound of a port's streams (Jackson's rule, 1955) bounds the round.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use flitcast_proto::cost::{Link, Model, Ports};
use flitcast_proto::items::Message;
use flitcast_proto::ops::Brief;
use flitcast_proto::predict::predict_unless;
use flitcast_proto::round::RoundFault;
use flitcast_proto::schedule::order_search::{self, Hop};
use flitcast_proto::schedule::pace::{Pacing, Timing};
use flitcast_proto::{PeId, Tree};
use serde::Serialize;

use crate::job::flit_size::Foreseen;
use crate::text::figures::as_micros;
use crate::text::units::Nanos;

/// Number of nodes that the search visits, in some tenths of a second.
const MOST_NODES: u64 = 50_000;
/// Relative difference below which durations are equal: times are whole nanoseconds.
const ALIKE: f64 = 1e-6;

/// The result of a search for an order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OrderChoice {
    /// The predicted duration of a round in the order found, in nanoseconds.
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// The predicted duration with the largest tail first.
    #[serde(rename = "farthest_first_us", serialize_with = "as_micros")]
    pub farthest_first_ns: u64,
    /// A lower bound of the duration in any order of flits of this size.
    #[serde(rename = "bound_us", serialize_with = "as_micros")]
    pub bound_ns: u64,
    /// Distance of the order from the bound, in percent; 0 if it is optimal.
    pub gap_pct: f64,
}

impl fmt::Display for OrderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "searched for: {} instead of {} largest tail first; flits of this size take no less than {}, ",
            Nanos(self.predicted_ns),
            Nanos(self.farthest_first_ns),
            Nanos(self.bound_ns),
        )?;
        match self.gap_pct > 0.0 {
            true => write!(f, "gap {:.1} %", self.gap_pct),
            false => write!(f, "optimal"),
        }
    }
}

/// Predicts a scatter whose messages leave farthest destination first, whatever links and flits
/// cost.
///
/// # Errors
///
/// Returns the fault of a state machine, which is a bug of the schedule.
pub fn farthest_first(
    tree: &Arc<Tree>,
    mut foreseen: Foreseen,
    model: &Model,
    given_up: &AtomicBool,
) -> Result<Foreseen, RoundFault> {
    let root = &mut foreseen.briefs[tree.root().index()];
    let mut order: Vec<usize> = (0..root.sends.len()).collect();
    order.sort_by_key(|&place| {
        let pe = root.sends[place].id.pe();
        (Reverse(tree.depth(pe)), pe)
    });
    if !order.is_sorted() {
        reorder(root, &order);
        foreseen.prediction = predict_unless(given_up, tree, &foreseen.briefs, model)?;
    }
    Ok(foreseen)
}

/// Predicts a scatter in the best order found, which may be the order it has.
///
/// # Errors
///
/// Returns the error of a state machine, which is a bug in the schedule.
pub fn search(
    tree: &Arc<Tree>,
    mut foreseen: Foreseen,
    model: &Model,
    given_up: &AtomicBool,
) -> Result<Foreseen, RoundFault> {
    let root = tree.root().index();
    let brief = &foreseen.briefs[root];
    let streams: Vec<Stream> = brief
        .sends
        .iter()
        .map(|message| Stream::new(tree, model, brief, message))
        .collect();
    let farthest_first_ns = foreseen.ns();
    let order = better(tree, model, brief);
    if !order.is_sorted() {
        let mut briefs = foreseen.briefs.clone();
        reorder(&mut briefs[root], &order);
        let prediction = predict_unless(given_up, tree, &briefs, model)?;
        if prediction.round_ns() + prediction.commit_ns() < farthest_first_ns {
            (foreseen.briefs, foreseen.prediction) = (briefs, prediction);
        }
    }
    let (predicted_ns, bound_ns) = (foreseen.ns(), bound(&streams, tree.len()));
    let gap = predicted_ns as f64 / bound_ns.max(1.0) - 1.0;
    foreseen.order = Some(OrderChoice {
        predicted_ns,
        farthest_first_ns,
        bound_ns: bound_ns as u64,
        gap_pct: if gap > ALIKE { gap * 100.0 } else { 0.0 },
    });
    Ok(foreseen)
}

/// Puts the messages of a source into this order of their indices.
fn reorder(brief: &mut Brief, order: &[usize]) {
    brief.sends = order.iter().map(|&place| brief.sends[place]).collect();
    if !brief.packet_bytes.is_empty() {
        let packets = order.iter().map(|&place| brief.packet_bytes[place]);
        brief.packet_bytes = packets.collect();
    }
}

/// A message that passes one port after the other.
struct Stream {
    crossings: Vec<Crossing>,
}

/// A stream at a port.
struct Crossing {
    /// The port, as the index of its PE, or of the edge if the edge has its own port.
    port: usize,
    /// The PE at the lower end of the edge.
    edge: PeId,
    /// Time for which the stream occupies the port, in nanoseconds.
    takes: f64,
    /// Time from its start at the port until the next port can forward its first flit.
    head: f64,
    /// The burst of the link, in nanoseconds of the port.
    burst: f64,
    /// Time from a byte's departure to its arrival.
    latency: f64,
}

impl Stream {
    fn new(tree: &Tree, model: &Model, brief: &Brief, message: &Message) -> Stream {
        // Each message has one destination.
        let to = message.id.pe();
        let up = std::iter::successors(Some(to), |pe| tree.parent(*pe));
        let below_root = up.filter(|pe| *pe != tree.root());
        let full = u64::from(brief.flit_bytes_of(message.id));
        let crossing = |pe: PeId| {
            let link: &Link = &model.edges[pe.index()].down;
            let port = match (model.ports, tree.parent(pe)) {
                (Ports::Single, Some(parent)) => parent,
                _ => pe,
            };
            Crossing {
                port: port.index(),
                edge: pe,
                takes: link.occupied_ns(message.bytes.div_ceil(full), message.bytes),
                head: link.latency_ns + link.occupied_ns(1, message.bytes.min(full)),
                burst: link.burst_bytes * link.ns_per_byte,
                latency: link.latency_ns,
            }
        };
        let mut crossings: Vec<Crossing> = below_root.map(crossing).collect();
        crossings.reverse();
        Stream { crossings }
    }
}

/// Returns the indices of messages in the order that the search finds, on links as relays use them.
fn better(tree: &Tree, model: &Model, brief: &Brief) -> Vec<usize> {
    let given = 0..brief.sends.len();
    let full = brief.flit_bytes;
    let timing = Timing::of(model, full, Pacing::default());
    let hops = tree.ids().map(|pe| {
        let passage = timing.down(pe);
        Hop {
            flit: passage.ticks(full.into()).max(1),
            latency: passage.latency,
        }
    });
    let mut flits = vec![0; tree.len()];
    for message in &brief.sends {
        flits[message.id.pe().index()] = message.bytes.div_ceil(full.into());
    }
    let hops: Vec<Hop> = hops.collect();
    let Some(found) = order_search::search(tree, &flits, &hops, MOST_NODES) else {
        return given.collect();
    };
    let places: BTreeMap<PeId, usize> = brief
        .sends
        .iter()
        .map(|sent| sent.id.pe())
        .zip(given)
        .collect();
    found
        .order
        .iter()
        .filter_map(|pe| places.get(pe).copied())
        .collect()
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

/// Returns a lower bound of the duration in any order, on the wires alone. At each port the streams
/// start at the earliest of their times and follow each other, the one with the longest remaining
/// way first.
fn bound(streams: &[Stream], ports: usize) -> f64 {
    let idle = Load {
        soonest: f64::INFINITY,
        bursts: BTreeMap::new(),
        streams: Vec::new(),
    };
    let mut loads = vec![idle; ports];
    for Stream { crossings } in streams {
        let ways = crossings
            .iter()
            .map(|hop| (hop.head - hop.burst).max(hop.latency));
        let mut behind: f64 = ways.clone().sum();
        let mut ahead = 0.0;
        for (hop, way) in crossings.iter().zip(ways) {
            behind -= way;
            let load = &mut loads[hop.port];
            load.soonest = load.soonest.min(ahead);
            load.bursts.insert(hop.edge, hop.burst);
            load.streams.push([hop.takes, hop.latency + behind]);
            ahead += way;
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

#[cfg(test)]
mod tests;
