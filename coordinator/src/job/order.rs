//! The messages of a scatter in a better order than farthest first (`--order search`). That is the
//! best there is where links are alike (spec, section 2); elsewhere it keeps a relay waiting whose
//! links are slow.
//!
//! What the search finds (`schedule/order_search`) is predicted as every round is. What bounds a port's
//! streams from below (Jackson's rule, 1955) bounds the round.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use flitcast_proto::cost::{Link, Model, Ports};
use flitcast_proto::items::Message;
use flitcast_proto::ops::Brief;
use flitcast_proto::predict::predict;
use flitcast_proto::round::RoundFault;
use flitcast_proto::schedule::order_search::{self, Hop};
use flitcast_proto::schedule::pace::{Pacing, Timing};
use flitcast_proto::{PeId, Tree};
use serde::Serialize;

use crate::job::flit_size::Foreseen;
use crate::text::figures::as_micros;
use crate::text::units::Nanos;

/// Nodes that the search looks at, some tenths of a second's work.
const MOST_NODES: u64 = 50_000;
/// What differs by less than this part is as long: times are whole nanoseconds.
const ALIKE: f64 = 1e-6;

/// What a search for an order came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct OrderChoice {
    /// What a round was predicted to take in the order that was found, in nanoseconds, ...
    #[serde(rename = "predicted_us", serialize_with = "as_micros")]
    pub predicted_ns: u64,
    /// ... farthest destination first, ...
    #[serde(rename = "farthest_first_us", serialize_with = "as_micros")]
    pub farthest_first_ns: u64,
    /// ... and no less than this in any order.
    #[serde(rename = "bound_us", serialize_with = "as_micros")]
    pub bound_ns: u64,
    /// How far the order is from the bound, in percent; 0: it is optimal.
    pub gap_pct: f64,
}

impl fmt::Display for OrderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "searched for: {} instead of {} farthest first; these links allow no less than {}, ",
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

/// A scatter in the best order that is found, which farthest first may be.
///
/// # Errors
///
/// What a state machine refused: a bug of the schedule.
pub fn search(
    tree: &Arc<Tree>,
    mut foreseen: Foreseen,
    model: &Model,
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
        let prediction = predict(tree, &briefs, model)?;
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

/// Has a source send its messages in this order of their places.
fn reorder(brief: &mut Brief, order: &[usize]) {
    brief.sends = order.iter().map(|&place| brief.sends[place]).collect();
    if !brief.packet_bytes.is_empty() {
        let packets = order.iter().map(|&place| brief.packet_bytes[place]);
        brief.packet_bytes = packets.collect();
    }
}

/// A message on its way through one port after the other.
struct Stream {
    crossings: Vec<Crossing>,
}

/// A stream at a port.
struct Crossing {
    /// Which, by the index of its PE, or of the edge that has it for itself.
    port: usize,
    /// The PE at the lower end of the edge.
    edge: PeId,
    /// For which it has the port, in nanoseconds.
    takes: f64,
    /// From its start at the port until its first flit can go on from the next one.
    head: f64,
    /// What the link lets through at once, in nanoseconds of the port.
    burst: f64,
    /// From a byte's departure to its arrival.
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

/// The places of messages in the order that the search finds, on links as relays use them.
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

/// All that goes through a port.
#[derive(Clone)]
struct Load {
    /// When the first of it can be there, in nanoseconds.
    soonest: f64,
    /// By edge, what that lets through at once.
    bursts: BTreeMap<PeId, f64>,
    /// For which each stream has the port, and what follows at least until it has come.
    streams: Vec<[f64; 2]>,
}

/// What no order takes less than, on the wires alone. At a port, streams that are there from the
/// soonest of their times on go one after the other, the one with the longest way behind it first.
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
