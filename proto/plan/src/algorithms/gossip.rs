//! Gossip: each PE has one message for all other PEs, and all PEs follow a static schedule.

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::ops::{Collective, PeRole};
use flitcast_proto::{MessageId, PeId, Tree};

use super::blocks;
use super::gossip_plan::{self, Order};
use super::lock_step::LockStep;
use super::plan_limits::check_crossings;
use super::present::Present;
use super::spec::{
    AlgorithmSpec, AllPorts, BASE, Latencies, Offer, TreeRequirement, all_others, doublings,
};
use super::timetable::Timetable;
use crate::cost::Ports;
use crate::gossip::{CompleteGossip, Sending};
use crate::timing::Timing;

/// Over the edges of the tree, by the better of two orders.
pub(super) const FLOOD: AlgorithmSpec = AlgorithmSpec {
    latencies: Latencies::across,
    collective: Collective::Gossip,
    name: "flood",
    offer: Offer::choice(
        &[("flood", None)],
        "flood (over the edges of the tree, by the better of two orders)",
    ),
    gives_orders: true,
    all_ports: AllPorts::WithOwnLinks,
    role: PeRole::StaticSchedule,
    order,
    hops: |tree, bytes, timing| match timing.all_ports {
        true => hops(tree, bytes, timing, gossip_plan::all_ports),
        false => hops(tree, bytes, timing, flood),
    },
    plan: LockStep::List(|task| match task.ports {
        Ports::Single => {
            let total: u64 = task.flits.iter().sum();
            check_crossings(total.saturating_mul(task.tree.len() as u64 - 1))?;
            Ok(better_order(task.tree, task.flits))
        }
        Ports::PerEdge => Ok(gossip_plan::all_ports(task.tree, task.flits)),
    }),
    bound: gossip_plan::least_steps,
    ..BASE
};

/// In a ring of all PEs: each PE forwards to the next PE what the previous one sent.
pub(super) const CIRCULATE: AlgorithmSpec = AlgorithmSpec {
    name: "circulate",
    fits: TreeRequirement::Complete,
    latencies: |tree| Latencies::of_flits(tree.count() as u64 - 1),
    all_ports: AllPorts::Never,
    offer: Offer::choice(&[("circulate", None)], "circulate (in a ring of all PEs)"),
    plan: LockStep::None,
    // Each PE has one sender.
    gives_orders: false,
    peers: |tree, pe| neighbours_at(tree, pe, |pes| vec![1, pes - 1]),
    hops: |tree, bytes, timing| in_rounds(tree, bytes, timing, CompleteGossip::Circulate),
    bound: |_, flits| least_steps(flits),
    ..FLOOD
};

/// For an unspecified network, or with absent PEs: a ring of all PEs.
pub(super) const ON_NETWORK: AlgorithmSpec = AlgorithmSpec {
    name: "on-network",
    offer: Offer::INTERNAL,
    all_ports: AllPorts::WithOwnLinks,
    peers: all_others,
    latencies: |_| Latencies::of_flits(1),
    ..CIRCULATE
};

/// In step k each PE sends all that it has to the PE with a number less by 2^k (Bruck et al.).
pub(super) const DISSEMINATION: AlgorithmSpec = AlgorithmSpec {
    name: "dissemination",
    offer: Offer::choice(
        &[("dissemination", None)],
        "dissemination[:K] (in the fewest possible steps: Bruck et al., 1997)",
    ),
    peers: |tree, pe| {
        neighbours_at(tree, pe, |pes| {
            let away = widths(pes);
            away.clone().chain(away.map(|away| pes - away)).collect()
        })
    },
    hops: |tree, bytes, timing| {
        let in_one_port = CompleteGossip::Dissemination { ports: 1 };
        in_rounds(tree, bytes, timing, in_one_port)
    },
    latencies: |tree| Latencies::of_flits(doublings(tree)),
    gives_orders: true,
    ..CIRCULATE
};

/// Each PE sends its own message to all others, one after the other.
pub(super) const DIRECT: AlgorithmSpec = AlgorithmSpec {
    name: "direct",
    offer: Offer::choice(
        &[("direct", None)],
        "direct (each PE sends its message to all others)",
    ),
    peers: all_others,
    hops: |tree, bytes, timing| in_rounds(tree, bytes, timing, CompleteGossip::Direct),
    latencies: |_| Latencies::of_flits(1),
    gives_orders: true,
    ..CIRCULATE
};

/// Returns the messages with at least one nonnull delivery, by id.
fn order(tree: &Tree, bytes: &[u64], _timing: &Timing) -> Vec<MessageId> {
    let of_sources = (0..).map(MessageId).zip(bytes.chunks(tree.len()));
    let nonnull = of_sources.filter(|(_, bytes)| bytes.iter().any(|bytes| *bytes > 0));
    nonnull.map(|(id, _)| id).collect()
}

/// Returns the crossings that a planner computes for the present PEs, which it numbers
/// consecutively. A message goes to all of them, including PEs that have it already.
pub(super) fn hops(
    tree: &Tree,
    bytes: &[u64],
    timing: &Timing,
    planned: impl Fn(&Tree, &[u64]) -> Timetable,
) -> Vec<ScheduledHop> {
    let present = Present::of(tree);
    let flits = present.pes.iter().map(|from| {
        let row = &bytes[from.index() * tree.len()..][..tree.len()];
        timing.flits_of_longest(row)
    });
    let flits: Vec<u64> = flits.collect();
    let hops = planned(&present.tree, &flits).hops;
    present.renumbered(hops, timing, |message| present.who(message.pe()).into())
}

/// Returns the PEs whose positions among the present PEs are greater by `away`.
pub(super) fn neighbours_at(
    tree: &Tree,
    pe: PeId,
    away: impl Fn(usize) -> Vec<usize>,
) -> Vec<PeId> {
    let pes: Vec<PeId> = tree.pes().collect();
    let Ok(place) = pes.binary_search(&pe) else {
        return Vec::new();
    };
    let away = away(pes.len()).into_iter();
    away.map(|away| pes[(place + away) % pes.len()]).collect()
}

/// Returns a lower bound on the steps of a gossip with one port: some PE has to receive all flits
/// of the others, and each message has to reach all PEs.
fn least_steps(flits: &[u64]) -> u64 {
    let total: u64 = flits.iter().sum();
    let taken = flits.iter().map(|own| total - own).max().unwrap_or(0);
    let hops = flits.len().next_power_of_two().ilog2();
    match total {
        0 => 0,
        _ => taken.max(u64::from(hops)),
    }
}

/// Plans by the better of two orders, in blocks of flits if messages are long.
fn flood(tree: &Tree, flits: &[u64]) -> Timetable {
    let block = blocks::of_gossip(tree, flits);
    let in_blocks: Vec<u64> = flits.iter().map(|flits| flits.div_ceil(block)).collect();
    let hops = better_order(tree, &in_blocks).hops;
    let of_message = |message: MessageId| flits[message.index()];
    Timetable::of(blocks::in_flits(hops, block, of_message))
}

/// Plans by the better of two orders.
fn better_order(tree: &Tree, flits: &[u64]) -> Timetable {
    let hungry = gossip_plan::one_port(tree, flits, Order::Hungry);
    if hungry.time_steps == gossip_plan::least_steps(tree, flits) {
        return hungry;
    }
    let needy = gossip_plan::one_port(tree, flits, Order::Needy);
    match needy.time_steps < hungry.time_steps {
        true => needy,
        false => hungry,
    }
}

/// Returns the crossings of rounds in which each PE sends one packet and receives one.
fn in_rounds(
    tree: &Tree,
    bytes: &[u64],
    timing: &Timing,
    algorithm: CompleteGossip,
) -> Vec<ScheduledHop> {
    hops(tree, bytes, timing, |_, flits| rounds(flits, algorithm))
}

/// Plans rounds in which each PE sends one packet and receives one.
fn rounds(flits: &[u64], algorithm: CompleteGossip) -> Timetable {
    let pes = flits.len();
    let packets = |packets: Vec<Sending>| {
        packets.into_iter().map(|it| {
            let of = (it.first..it.first + it.count).map(|of| of % pes);
            let messages = of.map(|of| (MessageId(of as u64), flits[of]));
            ([it.from, it.to], messages.collect())
        })
    };
    Timetable::of_rounds(algorithm.sendings(pes).map(packets))
}

/// Returns 1, 2, 4 and so on below `pes`.
fn widths(pes: usize) -> impl Iterator<Item = usize> + Clone {
    std::iter::successors(Some(1), |width| Some(width * 2)).take_while(move |width| *width < pes)
}
