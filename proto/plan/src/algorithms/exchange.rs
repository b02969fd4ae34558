//! Total exchange: each PE has a message for each other PE, and all PEs follow a static schedule.
//!
//! Between hosts in a complete network, each with one port, each PE sends to a different PE in each round, so
//! that no port of a switch gets two streams (a new method). Rows, columns and messages are those of
//! [`exchange_plan`].

use flitcast_proto::items::{Packing, ScheduledHop};
use flitcast_proto::ops::{Collective, PeRole};
use flitcast_proto::schedule::flits_of;
use flitcast_proto::{PeId, Tree};

use super::lock_step::{LockStep, NotPlanned, rows};
use super::plan_limits::{MOST_HOSTS_OF_ROUNDS, check_crossings};
use super::present::Present;
use super::spec::{
    AlgorithmSpec, AllPorts, BASE, Latencies, Offer, OfferKind, TreeRequirement, all_others,
    no_peers,
};
use super::timetable::{Timetable, hop};
use super::{blocks, exchange_plan};
use crate::cost::Ports;
use crate::network::matching::Matching;
use crate::timing::Timing;

/// Rounds of pairs with split messages, optimal at the busiest port.
pub(super) const ROUNDS: AlgorithmSpec = AlgorithmSpec {
    collective: Collective::Exchange,
    name: "rounds",
    offer: Offer::choice(
        &[("rounds", None)],
        "In a complete network, rounds of pairs in which no PE receives two streams at once; the time \
         is what the busiest PE needs to send or to receive",
    ),
    fits: TreeRequirement::Complete,
    latencies: |_| Latencies::of_flits(1),
    gives_orders: true,
    role: PeRole::StaticSchedule,
    peers: all_others,
    hops: |tree, bytes, timing| hops(tree, bytes, timing, |_, flits| rounds(flits)),
    plan: LockStep::List(|task| match task.tree.len() {
        0..=MOST_HOSTS_OF_ROUNDS => Ok(rounds(&task.rows())),
        _ => Err(NotPlanned::Unfit(format!(
            "it is computed for at most {MOST_HOSTS_OF_ROUNDS} PEs"
        ))),
    }),
    bound: |tree, flits| least_steps(&rows(tree.len(), flits)),
    ..BASE
};

/// In round k, each PE sends to the PE with a number greater by k.
pub(super) const SHIFTS: AlgorithmSpec = AlgorithmSpec {
    name: "shifts",
    offer: Offer::choice(
        &[("shifts", None)],
        "Baseline: in round k each PE sends to the PE k places after it",
    ),
    plan: LockStep::List(|task| Ok(shifts(&task.rows()))),
    hops: |tree, bytes, timing| hops(tree, bytes, timing, |_, flits| shifts(flits)),
    ..ROUNDS
};

/// All messages at the same time, in an order that the network decides: a baseline.
pub(super) const AT_ONCE: AlgorithmSpec = AlgorithmSpec {
    name: "at-once",
    offer: Offer::other(
        OfferKind::Baseline,
        "Baseline: each PE sends to all others at the same time",
    ),
    plan: LockStep::None,
    gives_orders: false,
    all_ports: AllPorts::Always,
    ..SHIFTS
};

/// Over the edges of the tree only.
pub(super) const TREE: AlgorithmSpec = AlgorithmSpec {
    latencies: Latencies::across,
    name: "tree",
    fits: TreeRequirement::Trees,
    offer: Offer::choice(&[("tree", None)], "Over the edges of the tree"),
    plan: LockStep::List(|task| {
        let rows = task.rows();
        check_crossings(exchange_plan::crossings(task.tree, &rows))?;
        Ok(over_tree(task.tree, &rows, task.ports == Ports::PerEdge))
    }),
    peers: no_peers,
    hops: |tree, bytes, timing| {
        hops(tree, bytes, timing, |tree, flits| {
            in_blocks(tree, flits, timing.all_ports)
        })
    },
    all_ports: AllPorts::WithOwnLinks,
    bound: |tree, flits| exchange_plan::least_steps(tree, &rows(tree.len(), flits)),
    ..ROUNDS
};

/// Plans over the edges of a tree.
fn over_tree(tree: &Tree, flits: &[Vec<u64>], all_ports: bool) -> Timetable {
    match all_ports {
        true => exchange_plan::all_ports(tree, flits),
        false => exchange_plan::one_port(tree, flits),
    }
}

/// Plans over the edges of a tree, in blocks of flits if messages are long.
fn in_blocks(tree: &Tree, flits: &[Vec<u64>], all_ports: bool) -> Timetable {
    let block = blocks::of_exchange(tree, flits);
    let row = |row: &Vec<u64>| row.iter().map(|flits| flits.div_ceil(block)).collect();
    let rows: Vec<Vec<u64>> = flits.iter().map(row).collect();
    let plan = over_tree(tree, &rows, all_ports);
    let pes = flits.len();
    let of_message = |message| {
        let [from, to] = exchange_plan::ends(message, pes).map(PeId::index);
        flits[from][to]
    };
    let hops = blocks::in_flits(plan.hops, block, of_message);
    Timetable::of(hops)
}

/// Returns the crossings that a planner computes for the present PEs.
pub(super) fn hops(
    tree: &Tree,
    bytes: &[u64],
    timing: &Timing,
    planned: impl Fn(&Tree, &[Vec<u64>]) -> Timetable,
) -> Vec<ScheduledHop> {
    let present = Present::of(tree);
    let flits = |from: &PeId| {
        let row = &bytes[from.index() * tree.len()..];
        let row = present.pes.iter().map(|to| row[to.index()]);
        row.map(|bytes| flits_of(bytes, timing.flit_bytes()))
            .collect()
    };
    let flits: Vec<Vec<u64>> = present.pes.iter().map(flits).collect();
    let pes = present.pes.len();
    let hops = planned(&present.tree, &flits).hops;
    present.renumbered(hops, timing, |message| {
        let [from, to] = exchange_plan::ends(message, pes).map(|pe| present.who(pe));
        exchange_plan::message(from, to, tree.len())
    })
}

/// Returns a lower bound on the steps of an exchange: the greatest sum of a row or a column.
fn least_steps(flits: &[Vec<u64>]) -> u64 {
    let [rows, columns] = sums(flits);
    rows.into_iter().chain(columns).max().unwrap_or(0)
}

fn sums(flits: &[Vec<u64>]) -> [Vec<u64>; 2] {
    let rows = flits.iter().map(|row| row.iter().sum());
    let columns = (0..flits.len()).map(|to| flits.iter().map(|row| row[to]).sum());
    [rows.collect(), columns.collect()]
}

/// Plans shifts: in round k, P_i sends its whole message to P_(i + k mod N). A round takes as long
/// as its longest message.
fn shifts(flits: &[Vec<u64>]) -> Timetable {
    let pes = flits.len();
    let rounds = (1..pes).map(|shift| {
        (0..pes).map(move |from| {
            let to = (from + shift) % pes;
            let message = exchange_plan::message(PeId(from as u32), PeId(to as u32), pes);
            ([from, to], vec![(message, flits[from][to])])
        })
    });
    Timetable::of_rounds(rounds)
}

/// Plans rounds, each a perfect matching of senders and receivers with flits left, as long as the
/// shortest of its pairs has flits. The plan takes exactly as many steps as the busiest port has
/// flits, because all other ports get idle flits until all ports are equally busy (König,
/// Birkhoff). A message may be split between rounds.
fn rounds(flits: &[Vec<u64>]) -> Timetable {
    let pes = flits.len();
    let mut left = padded(flits);
    // PEs are senders, and behind these receivers.
    let mut matching = Matching::new(2 * pes);
    let receiver = |pe: usize| (pes + pe) as u32;
    // For each pair: the flits that were sent, and the crossing of the last of them.
    let mut sent = vec![vec![0; pes]; pes];
    let mut last: Vec<Option<usize>> = vec![None; pes];
    let mut hops: Vec<ScheduledHop> = Vec::new();
    let (mut step, end) = (0, least_steps(flits));
    while step < end {
        for from in 0..pes {
            // Rows and columns have the same sum, so each sender has a receiver. The search starts at the
            // next PE and ends with idling: if all messages have equal length, rounds are shifts.
            if matching.partner(from as u32).is_none() {
                matching.add(from as u32, |from| {
                    let (from, left) = (from as usize, &left);
                    let others = (1..=pes).map(move |further| (from + further) % pes);
                    others.filter(move |to| left[from][*to] > 0).map(receiver)
                });
            }
        }
        let to = |from: usize| Some((from, matching.partner(from as u32)? as usize - pes));
        let pairs: Vec<(usize, usize)> = (0..pes).filter_map(to).collect();
        let least = pairs.iter().map(|(from, to)| left[*from][*to]).min();
        let round = least.unwrap_or(0);
        for (from, to) in pairs {
            left[from][to] -= round;
            if left[from][to] == 0 {
                matching.clear(&[from as u32, receiver(to)]);
            }
            let offset = sent[from][to];
            let real = round.min(flits[from][to] - offset);
            if real == 0 {
                continue;
            }
            sent[from][to] += real;
            // A pair of consecutive rounds continues its crossing.
            let before = last[from].map(|place| &mut hops[place]);
            let to_same = |hop: &&mut ScheduledHop| {
                hop.to.index() == to && hop.first_step + hop.flits == step + 1
            };
            match before.filter(to_same) {
                Some(hop) => hop.flits += real,
                None => {
                    last[from] = Some(hops.len());
                    let ends = [from, to].map(|pe| PeId(pe as u32));
                    let message = exchange_plan::message(ends[0], ends[1], pes);
                    let packing = Packing::Begins;
                    let hop = hop(message, ends, [offset, real], step + 1);
                    hops.push(ScheduledHop { packing, ..hop });
                }
            }
        }
        step += round;
    }
    Timetable::of(hops)
}

/// Returns `flits` plus idle flits, so that each row and each column has the greatest sum.
fn padded(flits: &[Vec<u64>]) -> Vec<Vec<u64>> {
    let most = least_steps(flits);
    let [rows, columns] = sums(flits);
    let idle = |sums: Vec<u64>| sums.into_iter().map(|sum| most - sum).collect();
    let mut idle: [Vec<u64>; 2] = [rows, columns].map(idle);
    let mut padded = flits.to_vec();
    let (mut row, mut column) = (0, 0);
    while row < flits.len() && column < flits.len() {
        let least = idle[0][row].min(idle[1][column]);
        padded[row][column] += least;
        idle[0][row] -= least;
        idle[1][column] -= least;
        match idle[0][row] {
            0 => row += 1,
            _ => column += 1,
        }
    }
    padded
}

#[cfg(test)]
mod tests {
    use flitcast_proto::seeded::SplitMix64;

    use super::*;
    use crate::tests::of_pairs;

    #[test]
    fn rounds_take_as_long_as_the_busiest_port() {
        let mut random = SplitMix64::new(9);
        for pes in 1..24 {
            let most = [1, 4, 1_000_000][pes % 3];
            let flits = of_pairs(pes as u64, || random.below(most + 1));
            let plan = rounds(&flits);
            assert_eq!(plan.time_steps, least_steps(&flits), "{flits:?}");
            let mut sent = vec![vec![0; pes]; pes];
            for hop in &plan.hops {
                let sent = &mut sent[hop.from.index()][hop.to.index()];
                assert_eq!(hop.offset, *sent, "{flits:?}");
                *sent += hop.flits;
            }
            assert_eq!(sent, flits);
        }
    }
}
