//! A scatter in packets over any tree, and the schedules without a search: under one cap on packet
//! sizes or with one count of packets, the largest tail first, or the farthest destination first.
//!
//! A packet still needs `(depth - 1) * (setup + size)` when it has left P0. That tail, and not the
//! depth, ranks packets of several sizes (not in the paper; paper 003, section 4.1 shows that depth
//! does not).

use std::cmp::Reverse;

use flitcast_proto::{PeId, Tree};

use super::Method;
use super::caps::caps;
use super::model::{LinkCost, Message, PacketPlanError, Run, Ticks, messages, send, way};

/// Limit of links on the paths of all messages of a plan on a tree.
const MOST_HOPS: u64 = 20_000_000;
/// Limits of tried caps, and of counts, and of link crossings for either: a quarter of a second.
const MOST_CAPS: usize = 300;
const MOST_SENDINGS: u64 = 30_000_000;

/// A scatter: its messages and their paths.
#[derive(Clone, Debug)]
pub struct Scatter {
    pub cost: LinkCost,
    /// The nonnull messages, farthest destination first.
    pub messages: Vec<Message>,
    /// The PEs that send each message, P0 first, by their index among all that send; P0 is 0.
    pub ways: Vec<Vec<u32>>,
    /// The depth of each PE that sends.
    pub relay_depths: Vec<u64>,
}

/// A packet of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The index of its message.
    pub message: usize,
    /// The size.
    pub flits: u64,
}

/// How packets are put in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sorting {
    /// The deepest destination first.
    FarthestFirst,
    /// The largest tail first: the packet that takes longest after it has left P0.
    LargestTailFirst,
    /// The given position of each message.
    Given(Vec<usize>),
}

impl Sorting {
    fn method(&self) -> Method {
        match self {
            Sorting::FarthestFirst => Method::FarthestFirst,
            Sorting::LargestTailFirst => Method::LargestTailFirst,
            Sorting::Given(_) => Method::Given,
        }
    }
}

/// A dispatch sequence and its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The packets in the order in which they leave P0.
    pub packets: Vec<Packet>,
    /// Time when the last packet is complete at its destination.
    pub time: Ticks,
}

impl Scatter {
    /// Creates the scatter of `flits[i]` for P_i.
    pub fn new(tree: &Tree, flits: &[u64], cost: LinkCost) -> Result<Scatter, PacketPlanError> {
        let messages = messages(tree, flits);
        let hops: u64 = messages.iter().map(|message| message.hops).sum();
        if hops > MOST_HOPS {
            return Err(PacketPlanError::Lengths(format!(
                "the messages cross {hops} links together, too many to plan in packets on a tree \
                 that is no path: at most {MOST_HOPS} are"
            )));
        }
        let mut relay_depths = Vec::new();
        // The index of each PE among the senders.
        let mut relay_of = vec![None; tree.len()];
        let mut relay = |sender: u32| {
            *relay_of[sender as usize].get_or_insert_with(|| {
                relay_depths.push(tree.depth(PeId(sender)).into());
                relay_depths.len() as u32 - 1
            })
        };
        let ways = messages.iter().map(|message| {
            let senders = way(tree, message.pe).into_iter();
            senders.map(&mut relay).collect()
        });
        Ok(Scatter {
            cost,
            ways: ways.collect(),
            messages,
            relay_depths,
        })
    }

    /// Returns the number of links on all paths.
    pub fn hops(&self) -> u64 {
        self.messages.iter().map(|message| message.hops).sum()
    }

    /// Returns the number of PEs that send, P0 included.
    pub fn relays(&self) -> usize {
        self.relay_depths.len()
    }

    /// Returns the time when the last of these packets is complete at its destination.
    pub fn time(&self, packets: &[Packet]) -> Ticks {
        let mut free = vec![0; self.relays()];
        let whole = packets.iter().map(|packet| {
            let ticks = self.cost.packet(packet.flits);
            send(&mut free, &self.ways[packet.message], ticks)
        });
        whole.max().unwrap_or(0)
    }

    /// Returns the number of link crossings with this cut, which saturates. `packets` maps the length
    /// of a message in flits to its number of packets.
    fn sendings(&self, packets: impl Fn(u64) -> u64) -> u64 {
        let all = self.messages.iter();
        let sendings = all.map(|message| message.hops.saturating_mul(packets(message.flits)));
        sendings.fold(0, u64::saturating_add)
    }

    /// Returns all messages in even packets, farthest destination first. `packets` maps the length
    /// of a message in flits to its number of packets.
    pub fn cut(&self, packets: impl Fn(u64) -> u64) -> Vec<Packet> {
        let mut cut = Vec::new();
        for (message, Message { pe, flits, .. }) in self.messages.iter().enumerate() {
            for run in super::model::even(*pe, *flits, packets(*flits)) {
                let packet = Packet {
                    message,
                    flits: run.flits,
                };
                cut.extend(std::iter::repeat_n(packet, run.packets as usize));
            }
        }
        cut
    }

    /// Returns the order of messages by their destinations.
    pub fn given(&self, order: &[PeId]) -> Sorting {
        let place = |message: &Message| order.iter().position(|pe| *pe == message.pe);
        let places = self.messages.iter().map(place);
        Sorting::Given(places.map(|place| place.unwrap_or(order.len())).collect())
    }

    /// Sorts packets; those of a message stay in their order.
    fn sort(&self, packets: &mut [Packet], by: &Sorting) {
        match by {
            Sorting::FarthestFirst => packets.sort_by_key(|packet| packet.message),
            Sorting::LargestTailFirst => packets.sort_by_key(|packet| {
                let hops = self.messages[packet.message].hops;
                let tail = self.cost.packet(packet.flits) * Ticks::from(hops - 1);
                (Reverse(tail), packet.message)
            }),
            Sorting::Given(places) => packets.sort_by_key(|packet| places[packet.message]),
        }
    }

    /// Returns the quickest schedule of these packets in one of these orders, and its method.
    pub fn best_sorted(&self, mut packets: Vec<Packet>, by: &[Sorting]) -> (Schedule, Method) {
        let mut best: Option<(Schedule, Method)> = None;
        for sorting in by {
            self.sort(&mut packets, sorting);
            let time = self.time(&packets);
            if best.as_ref().is_none_or(|(best, _)| time < best.time) {
                let packets = packets.clone();
                best = Some((Schedule { packets, time }, sorting.method()));
            }
        }
        best.unwrap_or((Schedule { packets, time: 0 }, Method::Given))
    }

    /// Returns the quickest schedule in one of these orders, under one cap on packet sizes or with one
    /// count of packets for all messages, and its method. It tries as many caps and counts as there is
    /// time for, from whole messages on.
    pub fn best_cut(&self, by: &[Sorting]) -> (Schedule, Method) {
        let mut best = self.best_sorted(self.cut(|_| 1), by);
        // Returns false if there is no time for this cut.
        let mut offer = |left: &mut u64, packets: &dyn Fn(u64) -> u64| {
            let sendings = self.sendings(packets).saturating_mul(by.len() as u64);
            let Some(rest) = left.checked_sub(sendings) else {
                return false;
            };
            *left = rest;
            let next = self.best_sorted(self.cut(packets), by);
            if next.0.time < best.0.time {
                best = next;
            }
            true
        };
        let lengths = self.messages.iter().map(|message| message.flits);
        let longest = lengths.clone().max().unwrap_or(0);
        let mut caps = caps(lengths, MOST_CAPS).tried.into_iter().rev();
        let mut left = MOST_SENDINGS;
        caps.all(|cap| offer(&mut left, &|flits| flits.div_ceil(cap.least)));
        let mut left = MOST_SENDINGS;
        let mut counts = 2..=longest.min(MOST_CAPS as u64);
        counts.all(|count| offer(&mut left, &|flits| flits.min(count)));
        best
    }

    /// Returns a sequence as runs of equal packets.
    pub fn runs(&self, packets: &[Packet]) -> Vec<Run> {
        let alike = packets.chunk_by(|one, next| one == next);
        let run = |alike: &[Packet]| {
            let pe = self.messages[alike[0].message].pe;
            Run::new(pe, alike[0].flits, alike.len() as u64)
        };
        alike.map(run).collect()
    }
}
