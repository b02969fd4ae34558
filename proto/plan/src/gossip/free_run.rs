//! The end of a gossip without waits for the end of steps: every directed edge sends its packets in the
//! order of steps, and a packet leaves as soon as its edges are free and its flits are present (not in
//! the paper).
//!
//! A packet that only forwards (a part of) one packet follows that flit by flit. It occupies all edges
//! of its path from beginning to end, for `t_s + D * t_d + F * t_l`. On equal edges no gossip takes
//! longer than in lock step.

use std::collections::BTreeMap;

use super::Gossip;
use super::steps::{Packet, Prices};
use crate::network::Grid;

/// A packet that is on its way, or has arrived.
#[derive(Clone, Copy)]
struct Flight {
    /// Time when its first flit begins to arrive.
    head: u128,
    /// Time when it has arrived.
    end: u128,
}

/// A range of flits that arrived in a packet.
struct ReceivedRange {
    end: u64,
    packet: usize,
    /// Number of flits of that packet before them.
    rank: u64,
}

struct FreeRun<'a> {
    grid: &'a Grid,
    prices: &'a Prices,
    /// Time from which each directed edge is free.
    free: Vec<u128>,
    flights: Vec<Flight>,
    /// The received ranges by class and PE, each by its first flit.
    received: Vec<Vec<BTreeMap<u64, ReceivedRange>>>,
}

/// Returns the arrival of the last packet, in units of the prices; `None` on a complete network, whose
/// ports are not edges.
pub fn free_run(gossip: &Gossip, prices: &Prices) -> Option<u128> {
    let grid = gossip.arena.grid()?;
    let (pes, dimensions) = (grid.pes(), grid.sides.len());
    let nothing = || (0..pes).map(|_| BTreeMap::new()).collect();
    let mut run = FreeRun {
        grid,
        prices,
        free: vec![0; 2 * pes * dimensions],
        flights: Vec::new(),
        received: (0..dimensions).map(|_| nothing()).collect(),
    };
    for step in gossip.steps() {
        for packet in &step.packets {
            run.send(packet);
        }
    }
    let ends = run.flights.iter().map(|flight| flight.end);
    Some(ends.max().unwrap_or(0))
}

impl FreeRun<'_> {
    fn send(&mut self, packet: &Packet) {
        let edges = self.edges(packet);
        let free = edges.iter().map(|edge| self.free[*edge]).max();
        let begin = free.unwrap_or(0).max(self.available(packet));
        let price = |price: u64, times: u64| u128::from(price) * u128::from(times);
        let hops = price(self.prices.hop, packet.hops.unsigned_abs());
        let head = begin + u128::from(self.prices.startup) + hops;
        let end = head + price(self.prices.flit, packet.flits.len());
        for edge in edges {
            self.free[edge] = end;
        }
        let ranges = &mut self.received[packet.class][packet.to.index()];
        let mut rank = 0;
        for &(first, last) in packet.flits.ranges() {
            let (end, packet) = (last, self.flights.len());
            ranges.insert(first, ReceivedRange { end, packet, rank });
            rank += last - first;
        }
        self.flights.push(Flight { head, end });
    }

    /// Returns the directed edges of a packet's path.
    fn edges(&self, packet: &Packet) -> Vec<usize> {
        let way = packet.hops.signum();
        let from = packet.from.index();
        let edge = |hop: i64| {
            let pe = self.grid.along(from, packet.axis, way * hop);
            2 * (pe * self.grid.sides.len() + packet.axis) + usize::from(way > 0)
        };
        (0..packet.hops.abs()).map(edge).collect()
    }

    /// Returns the earliest begin of a packet that its flits permit.
    fn available(&self, packet: &Packet) -> u128 {
        let ranges = &self.received[packet.class][packet.from.index()];
        let mut sources: Vec<usize> = Vec::new();
        let (mut received, mut last_rank) = (0, 0);
        for &(begin, end) in packet.flits.ranges() {
            let before = ranges.range(..=begin).next_back();
            let inside = ranges.range(begin + 1..end);
            for (first, range) in before.into_iter().chain(inside) {
                let (low, high) = (begin.max(*first), end.min(range.end));
                if low < high {
                    received += high - low;
                    last_rank = range.rank + high - first - 1;
                    sources.push(range.packet);
                }
            }
        }
        sources.dedup();
        match sources[..] {
            // The last flit must not leave before it is present, after the other flits of its packet.
            [only] if received == packet.flits.len() => {
                let ahead = last_rank + 1 - received;
                let wait = u128::from(self.prices.flit) * u128::from(ahead);
                self.flights[only].head + wait
            }
            _ => {
                let ends = sources.iter().map(|packet| self.flights[*packet].end);
                ends.max().unwrap_or(0)
            }
        }
    }
}
