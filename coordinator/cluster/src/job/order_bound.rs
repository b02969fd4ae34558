//! A lower bound of the duration of a scatter in any order of its messages: that of each port's streams
//! (Jackson's rule, 1955), on the wires alone.

use std::collections::BTreeMap;

use flitcast_plan::cost::{Model, Ports};
use flitcast_proto::cost::Link;
use flitcast_proto::items::Message;
use flitcast_proto::wire::{MAX_FLIT_BYTES, MIN_FLIT_BYTES};
use flitcast_proto::{PeId, Tree};

use crate::job::decisions::{OrderChoice, ScatterOrder};
use crate::job::planned_round::PlannedRound;

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
