//! Gossip on a network of lines or rings, or on a complete network, by an algorithm of
//! [`crate::gossip`], over real connections. The coordinator computes a static schedule, so a PE
//! needs to know neither the network nor the algorithm.
//!
//! A block is divided into parts as the algorithm divides it, by direction or by class of its flits,
//! and each part is a message with its own head, because parts arrive in no common order.
//!
//! A packet goes directly from its source to its destination. In the wormhole model a PE sends and
//! receives over all its edges at once. A real PE does so if it has a separate link for each
//! neighbour; with one port in each direction, its packets go one after the other
//! ([`super::in_order`]).

use std::ops::Range;
use std::sync::Mutex;

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::{MessageId, PeId, Tree};

use super::in_order::{Crossing, in_order};
use super::timetable::Timetable;
use crate::gossip::{Gossip, GossipAlgorithm, GossipNetwork, Unfit, share};
use crate::timing::Timing;

/// A network and an algorithm that suits it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OnNetwork {
    arena: &'static GossipNetwork,
    algorithm: &'static GossipAlgorithm,
    /// Name of the algorithm in input and output.
    name: &'static str,
}

impl OnNetwork {
    /// Creates a gossip on this network by this algorithm. Each pair is stored once until the
    /// process ends, so that [`Algorithm`](super::Algorithm) is `Copy`.
    pub fn new(arena: GossipNetwork, algorithm: GossipAlgorithm) -> Result<OnNetwork, Vec<Unfit>> {
        static KEPT: Mutex<Vec<OnNetwork>> = Mutex::new(Vec::new());
        algorithm.on(&arena)?;
        let mut kept = KEPT.lock().unwrap_or_else(|broken| broken.into_inner());
        let is_same = |it: &&OnNetwork| *it.arena == arena && *it.algorithm == algorithm;
        if let Some(same) = kept.iter().find(is_same) {
            return Ok(*same);
        }
        let name = algorithm.to_string();
        let one = OnNetwork {
            arena: Box::leak(Box::new(arena)),
            algorithm: Box::leak(Box::new(algorithm)),
            name: name.leak(),
        };
        kept.push(one);
        Ok(one)
    }

    /// Returns the name of the algorithm in input and output.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns whether a tree has all PEs of the network.
    pub(super) fn holds(self, tree: &Tree) -> bool {
        tree.count() == tree.len() && tree.len() == self.arena.pes()
    }

    /// Returns the PEs with which a PE may exchange packets, for any lengths: its neighbours if all
    /// packets go around, and otherwise all PEs on its lines.
    pub fn partners(self, pe: PeId) -> Vec<PeId> {
        let Some(grid) = self.arena.grid() else {
            let pes = (0..self.arena.pes()).map(|other| PeId(other as u32));
            return pes.filter(|other| *other != pe).collect();
        };
        let circulates = matches!(
            self.algorithm,
            GossipAlgorithm::Approach1 | GossipAlgorithm::Halves
        );
        let sides = grid.sides.iter().zip(grid.coordinates(pe.index()));
        let on_lines = sides.enumerate().flat_map(|(axis, (&side, own))| {
            let is_partner = move |other: &usize| match own.abs_diff(*other) {
                0 => false,
                1 => true,
                away => !circulates || grid.closed && away == side - 1,
            };
            let others = (0..side).filter(is_partner);
            others
                .map(move |other| pe.index() - own * grid.stride(axis) + other * grid.stride(axis))
        });
        on_lines.map(|other| PeId(other as u32)).collect()
    }

    /// Returns the number of parts of a block.
    pub(super) fn parts(self) -> usize {
        match self.algorithm {
            GossipAlgorithm::Halves => 2,
            _ => self.arena.classes(),
        }
    }

    /// Returns the flits of each part of a block of this length, the last ones of the block first: if
    /// there are any, the first part has one.
    pub(super) fn part_flits(self, flits: u64) -> Vec<Range<u64>> {
        let parts = self.parts();
        let part = |part| share(flits, part, parts)..share(flits, part + 1, parts);
        (0..parts).rev().map(part).collect()
    }

    /// Returns the crossings between the PEs of a tree without absent PEs.
    pub(super) fn hops(self, tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<ScheduledHop> {
        let lengths = bytes.chunks(tree.len());
        let flits: Vec<u64> = lengths.map(|row| timing.flits_of_longest(row)).collect();
        self.planned(&flits, timing).hops
    }

    fn planned(self, flits: &[u64], timing: &Timing) -> Timetable {
        let Ok(gossip) = Gossip::new(self.arena.clone(), flits, self.algorithm) else {
            unreachable!("it was looked at whether the algorithm suits the network")
        };
        let (pes, parts) = (flits.len(), self.parts());
        let of_parts = flits.iter().map(|flits| self.part_flits(*flits));
        let of_parts: Vec<Vec<Range<u64>>> = of_parts.collect();
        // By message id: the first part of each block, then the second part of each, and so on.
        let lengths = (0..parts).flat_map(|part| of_parts.iter().map(move |of| &of[part]));
        let lengths: Vec<u64> = lengths.map(|flits| flits.end - flits.start).collect();
        let (mut crossings, mut packet) = (Vec::new(), 0);
        for (number, step) in gossip.steps().enumerate() {
            let mut packets = step.packets;
            // Packets of the same direction and length go together, so that ports match.
            packets.sort_by_key(|packet| (packet.axis, packet.hops, packet.class));
            for sent in &packets {
                for piece in gossip.blocks.pieces(sent.class, &sent.flits) {
                    let block = piece.message.index();
                    let mut of_block = of_parts[block].iter().enumerate();
                    let Some((part, flits)) =
                        of_block.find(|(_, flits)| flits.contains(&piece.offset))
                    else {
                        continue;
                    };
                    crossings.push(Crossing {
                        message: MessageId((block + part * pes) as u64),
                        offset: piece.offset - flits.start,
                        flits: piece.flits,
                        from: sent.from,
                        to: sent.to,
                        packet,
                        step: number,
                    });
                }
                packet += 1;
            }
        }
        // A plan on lines has a port for each neighbour, one in a complete network has one.
        let has_planned_ports = timing.all_ports || self.arena.grid().is_none();
        in_order(pes, &lengths, &crossings, timing, has_planned_ports)
    }
}

#[cfg(test)]
mod tests {
    use super::OnNetwork;
    use crate::algorithms::{Algorithm, LinkRequirement};
    use crate::tests::arena;

    /// PEs reassemble blocks that travel in parts, which no prediction includes.
    #[test]
    fn gossips_that_divide_blocks_are_for_slow_links() {
        for (network, algorithm, pays_on) in [
            ("ring:8", "halves", LinkRequirement::Slow),
            ("torus:3x3", "approach1", LinkRequirement::Slow),
            ("ring:8", "approach1", LinkRequirement::Any),
            ("complete:8", "neighbour", LinkRequirement::Any),
        ] {
            let one = OnNetwork::new(arena(network), algorithm.parse().unwrap()).unwrap();
            let found = Algorithm::gossip_on(one).pays_on();
            assert_eq!(found, pays_on, "{algorithm} on {network}");
        }
    }
}
