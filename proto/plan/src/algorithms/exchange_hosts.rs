//! Total exchange between hosts in a complete network, each with one port (a new method).
//!
//! In each round each PE sends to a different PE, so that no port of a switch gets two streams.
//! Rows, columns and messages are those of [`exchange_plan`](super::exchange_plan).

use flitcast_proto::PeId;
use flitcast_proto::items::{Packing, ScheduledHop};

use super::exchange_plan::message;
use super::timetable::{Timetable, hop};
use crate::network::matching::Matching;

/// Returns a lower bound on the steps of an exchange: the greatest sum of a row or a column.
pub fn least_steps(flits: &[Vec<u64>]) -> u64 {
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
pub fn shifts(flits: &[Vec<u64>]) -> Timetable {
    let pes = flits.len();
    let rounds = (1..pes).map(|shift| {
        (0..pes).map(move |from| {
            let to = (from + shift) % pes;
            let message = message(PeId(from as u32), PeId(to as u32), pes);
            ([from, to], vec![(message, flits[from][to])])
        })
    });
    Timetable::of_rounds(rounds)
}

/// Plans rounds, each a perfect matching of senders and receivers with flits left, as long as the
/// shortest of its pairs has flits. The plan takes exactly as many steps as the busiest port has
/// flits, because all other ports get idle flits until all ports are equally busy (König,
/// Birkhoff). A message may be split between rounds.
pub fn rounds(flits: &[Vec<u64>]) -> Timetable {
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
                    let message = message(ends[0], ends[1], pes);
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
