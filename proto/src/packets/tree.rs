//! A scatter in packets over any tree, and the schedules that are found without a search: under
//! one cap on packet sizes, the largest tail first, or the farthest destination first.
//!
//! A packet still needs `(depth - 1) * (setup + size)` when it has left P0. That tail, and not the
//! depth, ranks packets of several sizes (ours; paper 003, section 4.1 shows that depth does not).

use std::cmp::Reverse;

use super::caps::caps;
use super::fault::PacketsFault;
use super::model::{LinkCost, Message, Run, SendPorts, Ticks, messages, way};
use crate::{PeId, Tree};

/// Links on the ways of all messages together that a plan on a tree may have.
const MOST_HOPS: u64 = 20_000_000;
/// Caps that are tried, and links that packets are sent over meanwhile: a quarter of a second.
const MOST_CAPS: usize = 300;
const MOST_SENDINGS: u64 = 30_000_000;

/// A scatter: what goes where, and by which ways.
#[derive(Clone, Debug)]
pub struct Scatter {
    /// What links cost.
    pub cost: LinkCost,
    /// The nonnull messages, farthest destination first.
    pub messages: Vec<Message>,
    /// Those who send messages on, all ways one behind the other; P0 is 0.
    ways: Vec<u32>,
    first_of_way: Vec<usize>,
    relay_depths: Vec<u64>,
}

/// A packet of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The place of its message.
    pub message: usize,
    /// Its size.
    pub flits: u64,
}

/// A dispatch sequence and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// What leaves P0, in order.
    pub packets: Vec<Packet>,
    /// When the last packet is whole at its destination.
    pub time: Ticks,
}

impl Scatter {
    /// The scatter of `flits[i]` for P_i.
    ///
    /// # Errors
    ///
    /// If the ways are too long together.
    pub fn new(tree: &Tree, flits: &[u64], cost: LinkCost) -> Result<Scatter, PacketsFault> {
        let messages = messages(tree, flits);
        let hops = messages.iter().map(|message| message.hops).sum();
        if hops > MOST_HOPS {
            return Err(PacketsFault::Hops {
                hops,
                most: MOST_HOPS,
            });
        }
        let mut scatter = Scatter {
            cost,
            messages,
            ways: Vec::with_capacity(hops as usize),
            first_of_way: vec![0],
            relay_depths: Vec::new(),
        };
        // By PE: its number among those who send.
        let mut relay_of = vec![None; tree.len()];
        for place in 0..scatter.messages.len() {
            for sender in way(tree, scatter.messages[place].pe) {
                let new = scatter.relay_depths.len() as u32;
                let relay = *relay_of[sender as usize].get_or_insert(new);
                if relay == new {
                    scatter.relay_depths.push(tree.depth(PeId(sender)).into());
                }
                scatter.ways.push(relay);
            }
            scatter.first_of_way.push(scatter.ways.len());
        }
        Ok(scatter)
    }

    /// Those who send the message at this place on, P0 first.
    pub fn way(&self, message: usize) -> &[u32] {
        &self.ways[self.first_of_way[message]..self.first_of_way[message + 1]]
    }

    /// Links on all ways together.
    pub fn hops(&self) -> u64 {
        self.ways.len() as u64
    }

    /// How many PEs send, P0 included.
    pub fn relays(&self) -> usize {
        self.relay_depths.len()
    }

    /// How deep each of them stands.
    pub fn relay_depths(&self) -> &[u64] {
        &self.relay_depths
    }

    /// When the last of these packets is whole at its destination.
    pub fn time(&self, packets: &[Packet]) -> Ticks {
        let mut ports = SendPorts::new(self.relays());
        let whole = packets.iter().map(|packet| {
            let ticks = self.cost.packet(packet.flits);
            ports.send(self.way(packet.message), ticks)
        });
        whole.max().unwrap_or(0)
    }

    /// Links that so many packets of each message cross, or more than can be counted.
    pub fn sendings(&self, cap: u64) -> u64 {
        let all = self.messages.iter();
        let sendings = all.map(|message| message.hops.saturating_mul(message.flits.div_ceil(cap)));
        sendings.fold(0, u64::saturating_add)
    }

    /// All messages in even packets of at most `cap` flits, farthest destination first.
    pub fn cut(&self, cap: u64) -> Vec<Packet> {
        let mut packets = Vec::new();
        for (message, Message { pe, flits, .. }) in self.messages.iter().enumerate() {
            for run in super::model::even(*pe, *flits, flits.div_ceil(cap)) {
                let packet = Packet {
                    message,
                    flits: run.flits,
                };
                packets.extend(std::iter::repeat_n(packet, run.packets as usize));
            }
        }
        packets
    }

    /// Sorts packets by what they still need when they have left P0.
    fn sort_by_tail(&self, packets: &mut [Packet]) {
        packets.sort_by_key(|packet| {
            let hops = self.messages[packet.message].hops;
            let tail = self.cost.packet(packet.flits) * Ticks::from(hops - 1);
            (Reverse(tail), packet.message)
        });
    }

    /// The best schedule under one cap, by either order, and whether it has the largest tail
    /// first: of as many caps as there is time for, the largest first. The first is no cap.
    pub fn best_under_a_cap(&self) -> (Schedule, bool) {
        let lengths = self.messages.iter().map(|message| message.flits);
        let caps = caps(lengths, MOST_CAPS).tried;
        let longest = caps.last().map_or(1, |cap| cap.most);
        let mut packets = self.cut(longest);
        let mut best = Schedule {
            time: self.time(&packets),
            packets: packets.clone(),
        };
        let mut is_by_tail = false;
        let mut left = MOST_SENDINGS;
        for cap in caps.iter().rev().map(|cap| cap.least) {
            let sendings = self.sendings(cap).saturating_mul(2);
            if sendings > left {
                break;
            }
            left -= sendings;
            packets = self.cut(cap);
            for by_tail in [false, true] {
                if by_tail {
                    self.sort_by_tail(&mut packets);
                }
                let time = self.time(&packets);
                if time < best.time {
                    best.time = time;
                    best.packets.clone_from(&packets);
                    is_by_tail = by_tail;
                }
            }
        }
        (best, is_by_tail)
    }

    /// A sequence as runs of packets that are alike.
    pub fn runs(&self, packets: &[Packet]) -> Vec<Run> {
        let alike = packets.chunk_by(|one, next| one == next);
        let run = |alike: &[Packet]| Run {
            pe: self.messages[alike[0].message].pe,
            flits: alike[0].flits,
            packets: alike.len() as u64,
        };
        alike.map(run).collect()
    }
}
