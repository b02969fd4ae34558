//! Gossip on a complete network with one port for each PE: the sender, the receiver and the blocks of
//! each packet, step by step.
//!
//! Dissemination is Bruck's (Bruck, Ho, Kipnis, Upfal, Weathersby, 1997); circulating, and neighbours
//! that swap, are the algorithms of MPI libraries for rings and for even numbers of PEs.

use flitcast_proto::PeId;

use super::flits::Blocks;
use super::steps::{Packet, Step};

/// A gossip algorithm for complete networks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompleteGossip {
    /// Each PE receives from `ports` others all blocks that they have: `ceil(log_{ports + 1} N)` steps.
    Dissemination {
        /// Number of packets that a PE sends in a step.
        ports: usize,
    },
    /// Each PE forwards to the next what it received from the previous one.
    Circulate,
    /// Circulation in both directions at once.
    CirculateBothWays,
    /// Neighbours in an even number of PEs swap what they received in the step before.
    Neighbour,
    /// Each PE sends to all.
    Direct,
}

impl CompleteGossip {
    /// Returns the maximum number of packets that a PE sends in a step.
    pub fn ports(self, pes: usize) -> usize {
        match self {
            CompleteGossip::Dissemination { ports } => ports,
            CompleteGossip::Circulate | CompleteGossip::Neighbour => 1,
            CompleteGossip::CirculateBothWays => 2,
            CompleteGossip::Direct => pes - 1,
        }
    }

    /// Returns the steps; steps without packets are omitted.
    pub fn steps<'a>(self, blocks: &'a Blocks) -> Box<dyn Iterator<Item = Step> + 'a> {
        let n = blocks.lengths().len();
        let packets: Box<dyn Iterator<Item = Vec<Packet>> + 'a> = match self {
            CompleteGossip::Dissemination { ports } => {
                let widths = std::iter::successors(Some(1), move |w| Some(w * (ports + 1)));
                let widths = widths.take_while(move |width| *width < n);
                Box::new(widths.map(move |width| disseminate(blocks, width, ports)))
            }
            CompleteGossip::Circulate => Box::new((1..n).map(move |step| {
                let from = |pe| packet(blocks, pe, pe + 1, pe + 1 + n - step, 1);
                (0..n).map(from).collect()
            })),
            CompleteGossip::CirculateBothWays => {
                Box::new((1..=n / 2).map(move |step| circulate_both_ways(blocks, step)))
            }
            CompleteGossip::Neighbour => Box::new((0..n / 2).map(move |step| swap(blocks, step))),
            CompleteGossip::Direct => {
                let all = (0..n).flat_map(move |pe| (1..n).map(move |to| (pe, pe + to)));
                let all = all.map(move |(pe, to)| packet(blocks, pe, to, pe, 1));
                Box::new(std::iter::once(all.collect()))
            }
        };
        let nonnull = packets.map(|mut packets| {
            packets.retain(|packet| !packet.flits.is_empty());
            packets
        });
        let steps = nonnull.filter(|packets| !packets.is_empty());
        Box::new(steps.map(|packets| Step { packets }))
    }
}

/// Returns a packet with the blocks `first` to `first + count - 1`, all numbers modulo N.
fn packet(blocks: &Blocks, from: usize, to: usize, first: usize, count: usize) -> Packet {
    let n = blocks.lengths().len();
    let (from, to, first) = (from % n, to % n, first % n);
    let end = first + count;
    let flits = blocks.of_range(0, first, end.min(n));
    let around = blocks.of_range(0, 0, end.saturating_sub(n));
    Packet {
        from: PeId(from as u32),
        to: PeId(to as u32),
        axis: 0,
        hops: 1,
        class: 0,
        flits: flits.union(&around),
    }
}

/// Returns the packets of a step in which PE p has blocks p to p + width - 1, and receives those that
/// begin at `p + i * width`.
fn disseminate(blocks: &Blocks, width: usize, ports: usize) -> Vec<Packet> {
    let n = blocks.lengths().len();
    let sources = (1..=ports).map_while(|i| Some(i * width).filter(|away| *away < n));
    let to = |away: usize| {
        let count = width.min(n - away);
        (0..n).map(move |pe| packet(blocks, pe + away, pe, pe + away, count))
    };
    sources.flat_map(to).collect()
}

fn circulate_both_ways(blocks: &Blocks, step: usize) -> Vec<Packet> {
    let n = blocks.lengths().len();
    let meets = 2 * step == n;
    let half = |mut packet: Packet, part| {
        if meets {
            packet.flits = packet.flits.cut(part, 2);
        }
        packet
    };
    let right = (0..n).map(|pe| half(packet(blocks, pe, pe + 1, pe + 1 + n - step, 1), 0));
    let left = (0..n).map(|pe| half(packet(blocks, pe, pe + n - 1, pe + step - 1, 1), 1));
    right.chain(left).collect()
}

/// Returns the swaps of step s between p and p + 1 where p + s is even: first their own blocks, then
/// those of both, then the two that arrived in the step before.
fn swap(blocks: &Blocks, step: usize) -> Vec<Packet> {
    let n = blocks.lengths().len();
    let sent = |pe: usize| {
        let is_first = (pe + step).is_multiple_of(2);
        let other = if is_first { pe + 1 } else { pe + n - 1 };
        if step == 0 {
            return packet(blocks, pe, other, pe, 1);
        }
        // Data from one side is forwarded to the other: in step 1 the own pair of the PE at distance
        // `step - 1` on the side where it came from.
        let first = if is_first {
            pe + n - step
        } else {
            pe + step - 1
        };
        packet(blocks, pe, other, first, 2)
    };
    (0..n).map(sent).collect()
}
