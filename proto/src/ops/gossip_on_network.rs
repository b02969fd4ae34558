//! Gossip on a network of lines or rings, or between all, by one of the algorithms of
//! [`crate::gossip`], for real. The coordinator works the list out, and a PE is told of it as of
//! any other, so it needs to know neither the network nor the algorithm.
//!
//! A packet goes directly from one of its ends to the other. The wormhole model has PEs send and
//! take over all their edges at once. They do so where they have a link of their own for each; where
//! a PE has one port each way, its packets go one after the other ([`super::in_order`]).

use std::hash::{Hash, Hasher};
use std::sync::Mutex;

use super::gossip;
use super::in_order::{Crossing, in_order};
use super::messages::EACH_TO_OTHERS;
use super::table::{AllPorts, Entry, everybody};
use super::timetable::Timetable;
use crate::gossip::{Algorithm, Arena, Gossip, Unfit};
use crate::items::Leg;
use crate::schedule::pace::Timing;
use crate::{PeId, Tree};

/// A network and an algorithm that suits it.
#[derive(Clone, Copy, Debug)]
pub struct OnNetwork {
    arena: &'static Arena,
    algorithm: &'static Algorithm,
    /// As users type and read it.
    name: &'static str,
}

/// Where nobody has said on which network, and where somebody is absent: as in a ring of all.
pub(super) const ON_NETWORK: Entry = Entry {
    algorithm: "on-network",
    ways: &[],
    code: 20,
    all_ports: AllPorts::WithOwnLinks,
    messages: EACH_TO_OTHERS,
    peers: everybody,
    ..gossip::CIRCULATE
};

impl OnNetwork {
    /// A gossip on this network by this algorithm. It is kept as long as the process lives, once,
    /// so that an operation is a word that can be copied.
    ///
    /// # Errors
    ///
    /// All for which the algorithm does not suit the network.
    pub fn new(arena: Arena, algorithm: Algorithm) -> Result<OnNetwork, Vec<Unfit>> {
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

    /// The algorithm, as users type and read it.
    pub fn algorithm(self) -> &'static str {
        self.name
    }

    /// Whether all of the network's PEs are on a tree.
    pub(super) fn holds(self, tree: &Tree) -> bool {
        tree.count() == tree.len() && tree.len() == self.arena.pes()
    }

    /// Those with whom a PE may have packets to exchange, whatever the lengths: neighbours, where all
    /// just go around, or else all on its lines.
    pub fn partners(self, pe: PeId) -> Vec<PeId> {
        let Some(grid) = self.arena.grid() else {
            let pes = (0..self.arena.pes()).map(|other| PeId(other as u32));
            return pes.filter(|other| *other != pe).collect();
        };
        let goes_around = matches!(self.algorithm, Algorithm::Approach1 | Algorithm::Halves);
        let sides = grid.sides.iter().zip(grid.coordinates(pe.index()));
        let on_lines = sides.enumerate().flat_map(|(axis, (&side, own))| {
            let is_partner = move |other: &usize| match own.abs_diff(*other) {
                0 => false,
                1 => true,
                away => !goes_around || grid.closed && away == side - 1,
            };
            let others = (0..side).filter(is_partner);
            others
                .map(move |other| pe.index() - own * grid.stride(axis) + other * grid.stride(axis))
        });
        on_lines.map(|other| PeId(other as u32)).collect()
    }

    /// What crosses between the PEs of a tree that lacks none.
    pub(super) fn legs(self, tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<Leg> {
        gossip::legs(tree, bytes, timing, |_, flits| {
            self.planned(flits, timing.all_ports)
        })
    }

    fn planned(self, flits: &[u64], all_ports: bool) -> Timetable {
        let Ok(gossip) = Gossip::new(self.arena.clone(), flits, self.algorithm) else {
            unreachable!("it was looked at whether the algorithm suits the network")
        };
        let mut crossings = Vec::new();
        for step in gossip.steps() {
            let mut packets = step.packets;
            // All packets of one direction and length together, so that ports match.
            packets.sort_by_key(|packet| (packet.axis, packet.hops, packet.class));
            for packet in &packets {
                let pieces = gossip.blocks.pieces(packet.class, &packet.flits);
                crossings.extend(pieces.map(|piece| Crossing {
                    message: piece.message,
                    offset: piece.offset,
                    flits: piece.flits,
                    from: packet.from,
                    to: packet.to,
                }));
            }
        }
        in_order(flits, &crossings, all_ports)
    }
}

impl PartialEq for OnNetwork {
    fn eq(&self, other: &OnNetwork) -> bool {
        // Each is kept once.
        std::ptr::eq(self.arena, other.arena) && std::ptr::eq(self.algorithm, other.algorithm)
    }
}

impl Eq for OnNetwork {}

impl Hash for OnNetwork {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}
