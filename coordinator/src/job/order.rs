//! A better order of a scatter's messages than farthest first (`--order search`). Farthest first is
//! optimal on equal links (spec, section 2); on others it may keep a relay with slow links waiting.
//!
//! The result of the search (`schedule/order_search`), farthest first and the largest tail first are
//! predicted like every round, and the quickest is taken. The lower bound of a port's streams
//! (Jackson's rule, 1955) bounds the round.

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
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use flitcast_proto::{PeId, Tree};
use serde::Serialize;

use crate::job::flit_size::Foreseen;
use crate::options::order::MessageOrder;
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
    #[serde(rename = "tail_first_us", serialize_with = "as_micros")]
    pub tail_first_ns: u64,
    /// The predicted duration farthest destination first.
    #[serde(rename = "farthest_first_us", serialize_with = "as_micros")]
    pub farthest_first_ns: u64,
    /// A lower bound of the duration in any order of these flits; of any packets, if they were chosen
    /// as well.
    #[serde(rename = "bound_us", serialize_with = "as_micros")]
    pub bound_ns: u64,
    /// Whether the bound is for any packets.
    #[serde(skip)]
    pub of_any_packets: bool,
    /// Distance of the order from the bound, in percent; 0 if it is optimal.
    pub gap_pct: f64,
}

impl OrderChoice {
    /// Returns the choice with another bound.
    fn bounded(self, bound_ns: f64) -> OrderChoice {
        let gap = self.predicted_ns as f64 / bound_ns.max(1.0) - 1.0;
        OrderChoice {
            bound_ns: bound_ns as u64,
            gap_pct: if gap > ALIKE { gap * 100.0 } else { 0.0 },
            ..self
        }
    }

    /// Returns the choice with a lower bound for any packets of these messages.
    pub fn of_any_packets(self, tree: &Tree, foreseen: &Foreseen, model: &Model) -> OrderChoice {
        let streams = streams(tree, foreseen, model, |message| Cut {
            flits: message.bytes.div_ceil(MAX_FLIT_BYTES.into()),
            first_bytes: message.bytes.min(MIN_FLIT_BYTES.into()),
            last_bytes: 1,
            is_exact: false,
        });
        OrderChoice {
            of_any_packets: true,
            ..self.bounded(bound(&streams, tree.len()))
        }
    }
}

impl fmt::Display for OrderChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "searched for: {} instead of {} largest tail first; {} no less than {}, ",
            Nanos(self.predicted_ns),
            Nanos(self.tail_first_ns),
            match self.of_any_packets {
                true => "any packets take",
                false => "flits of this size take",
            },
            Nanos(self.bound_ns),
        )?;
        match self.gap_pct > 0.0 {
            true => write!(f, "gap {:.1} %", self.gap_pct),
            false => write!(f, "optimal"),
        }
    }
}

/// Predicts a scatter, planned with the largest tail first, in the requested order of its messages.
///
/// # Errors
///
/// Returns the error of a state machine, which is a bug in the schedule.
pub fn ordered(
    asked: MessageOrder,
    tree: &Arc<Tree>,
    foreseen: Foreseen,
    model: &Model,
    given_up: &AtomicBool,
) -> Result<Foreseen, RoundFault> {
    match asked {
        MessageOrder::Tail => Ok(foreseen),
        MessageOrder::Fdf => {
            let order = farthest_first(tree, &foreseen);
            let fdf = reordered(tree, &foreseen, &order, model, given_up)?;
            Ok(fdf.unwrap_or(foreseen))
        }
        MessageOrder::Search => search(tree, foreseen, model, given_up),
    }
}

/// Returns the indices of messages by decreasing depth of their destinations, whatever links and
/// flits cost.
fn farthest_first(tree: &Tree, foreseen: &Foreseen) -> Vec<usize> {
    let sends = &foreseen.briefs[tree.root().index()].sends;
    let mut order: Vec<usize> = (0..sends.len()).collect();
    order.sort_by_key(|&place| {
        let pe = sends[place].id.pe();
        (Reverse(tree.depth(pe)), pe)
    });
    order
}

/// Predicts a scatter in another order; returns `None` if that is the order it has.
fn reordered(
    tree: &Arc<Tree>,
    foreseen: &Foreseen,
    order: &[usize],
    model: &Model,
    given_up: &AtomicBool,
) -> Result<Option<Foreseen>, RoundFault> {
    if order.is_sorted() {
        return Ok(None);
    }
    let mut briefs = foreseen.briefs.clone();
    reorder(&mut briefs[tree.root().index()], order);
    let prediction = predict_unless(given_up, tree, &briefs, model)?;
    Ok(Some(foreseen.with(briefs, prediction)))
}

/// Predicts a scatter in the best order found, which may be the order it has.
fn search(
    tree: &Arc<Tree>,
    tail_first: Foreseen,
    model: &Model,
    given_up: &AtomicBool,
) -> Result<Foreseen, RoundFault> {
    let root = &tail_first.briefs[tree.root().index()];
    let bound_ns = bound_of(tree, &tail_first, model);
    let of_order = |order: Vec<usize>| reordered(tree, &tail_first, &order, model, given_up);
    let fdf = of_order(farthest_first(tree, &tail_first))?;
    let found = of_order(better(tree, model, root))?;
    let tail_first_ns = tail_first.ns();
    let farthest_first_ns = fdf.as_ref().map_or(tail_first_ns, Foreseen::ns);
    let quickest = fdf.into_iter().chain(found).min_by_key(Foreseen::ns);
    let mut best = match quickest {
        Some(quickest) if quickest.ns() < tail_first_ns => quickest,
        _ => tail_first,
    };
    let choice = OrderChoice {
        predicted_ns: best.ns(),
        tail_first_ns,
        farthest_first_ns,
        bound_ns: 0,
        of_any_packets: false,
        gap_pct: 0.0,
    };
    best.order = Some(choice.bounded(bound_ns));
    Ok(best)
}

/// Returns a lower bound of the duration of a scatter of the same packets in any order.
pub fn bound_of(tree: &Tree, foreseen: &Foreseen, model: &Model) -> f64 {
    let brief = &foreseen.briefs[tree.root().index()];
    let streams = streams(tree, foreseen, model, |message| {
        let full = u64::from(brief.flit_bytes_of(message.id));
        let flits = message.bytes.div_ceil(full);
        Cut {
            flits,
            first_bytes: message.bytes.min(full),
            last_bytes: message.bytes - flits.saturating_sub(1) * full,
            is_exact: true,
        }
    });
    bound(&streams, tree.len())
}

/// The flits of a message.
struct Cut {
    flits: u64,
    first_bytes: u64,
    last_bytes: u64,
    /// Whether this is the cut; otherwise it has the least of each number.
    is_exact: bool,
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

/// Returns the streams of a scatter whose messages are cut in this way.
fn streams(
    tree: &Tree,
    foreseen: &Foreseen,
    model: &Model,
    cut: impl Fn(&Message) -> Cut,
) -> Vec<Stream> {
    let sends = foreseen.briefs[tree.root().index()].sends.iter();
    sends
        .map(|message| Stream::new(tree, model, message, cut(message)))
        .collect()
}

impl Stream {
    fn new(tree: &Tree, model: &Model, message: &Message, cut: Cut) -> Stream {
        // Each message has one destination.
        let to = message.id.pe();
        let up = std::iter::successors(Some(to), |pe| tree.parent(*pe));
        let below_root = up.filter(|pe| *pe != tree.root());
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
    for stream in streams {
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

#[cfg(test)]
mod tests;
