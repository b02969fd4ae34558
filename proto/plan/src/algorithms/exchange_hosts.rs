//! Total exchange between hosts in a complete network, each with one port (a new method).
//!
//! In each round each PE sends to a different PE, so that no port of a switch gets two streams.
//! Rows, columns and messages are those of [`exchange_plan`](super::exchange_plan).

use flitcast_proto::PeId;
use flitcast_proto::items::{Packing, ScheduledHop};

use super::exchange_plan::message;
use super::timetable::{Timetable, hop};

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
    let mut matching = Matching::of(pes);
    // For each pair: the flits that were sent, and the crossing of the last of them.
    let mut sent = vec![vec![0; pes]; pes];
    let mut last: Vec<Option<usize>> = vec![None; pes];
    let mut hops: Vec<ScheduledHop> = Vec::new();
    let (mut step, end) = (0, least_steps(flits));
    while step < end {
        matching.complete(&left);
        let pairs = || matching.receiver.iter().enumerate();
        let pairs: Vec<(usize, usize)> = pairs().filter_map(|(i, j)| Some((i, (*j)?))).collect();
        let least = pairs.iter().map(|(from, to)| left[*from][*to]).min();
        let round = least.unwrap_or(0);
        for (from, to) in pairs {
            left[from][to] -= round;
            if left[from][to] == 0 {
                matching.part(from, to);
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

/// A matching of senders and receivers.
struct Matching {
    receiver: Vec<Option<usize>>,
    sender: Vec<Option<usize>>,
}

impl Matching {
    fn of(pes: usize) -> Matching {
        Matching {
            receiver: vec![None; pes],
            sender: vec![None; pes],
        }
    }

    fn part(&mut self, from: usize, to: usize) {
        self.receiver[from] = None;
        self.sender[to] = None;
    }

    /// Matches each PE with a receiver for which it has flits left. Such a matching exists if all
    /// rows and columns have the same sum.
    fn complete(&mut self, left: &[Vec<u64>]) {
        for from in 0..left.len() {
            if self.receiver[from].is_none() {
                self.augment(from, left);
            }
        }
    }

    /// Finds a receiver for a sender by the shortest chain of senders that change theirs (breadth
    /// first).
    fn augment(&mut self, root: usize, left: &[Vec<u64>]) {
        // For each receiver: the sender that it would be given to.
        let mut given: Vec<Option<usize>> = vec![None; left.len()];
        let mut senders = vec![root];
        let mut next = 0;
        while let Some(&from) = senders.get(next) {
            next += 1;
            // Starts at the next PE and ends with idling: if all messages have equal length, rounds
            // are shifts.
            let others = (1..=left.len()).map(|further| (from + further) % left.len());
            for to in others.filter(|to| left[from][*to] > 0) {
                if given[to].is_some() {
                    continue;
                }
                given[to] = Some(from);
                match self.sender[to] {
                    Some(other) => senders.push(other),
                    None => return self.give(to, &given),
                }
            }
        }
    }

    /// Gives a receiver to its new sender, that one's old receiver to another sender, and so on.
    fn give(&mut self, free: usize, given: &[Option<usize>]) {
        let mut to = Some(free);
        while let Some(receiver) = to {
            let from = given[receiver];
            self.sender[receiver] = from;
            to = from.and_then(|from| self.receiver[from].replace(receiver));
        }
    }
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
