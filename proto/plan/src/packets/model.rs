//! The cost of a packet, dispatch sequences, and their simulation (paper 003, chapter 2).
//!
//! A packet of p flits on a link takes the set-up cost and p: it occupies the sender's send port and
//! the receiver's receive port for that time. A relay sends a packet when it has all of it and its send
//! port is free, first come, first served.

use std::str::FromStr;

use flitcast_proto::{PeId, Tree};
use smallvec::SmallVec;
use thiserror::Error;

use crate::fraction::{Fraction, greatest_common_divisor};
use crate::schedule::scatter::farthest_first;

/// A time in ticks of a [`LinkCost`]: exact, and wide enough for all times within the limits of this
/// module.
pub type Ticks = u128;

/// The reason why messages cannot be planned in packets, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PacketPlanError {
    /// Messages that are too long, or cross too many links.
    #[error("{0}")]
    Lengths(String),
    /// A cut of messages that does not suit them.
    #[error("{0}")]
    Split(String),
}

/// The largest numerator and denominator of a set-up cost: with them, and with
/// [`MAX_FLITS`](super::MAX_FLITS), all products of this module fit into 128 bits.
const MAX_NUMERATOR: u64 = 1 << 32;
const MAX_DENOMINATOR: u64 = 1 << 16;

/// The cost of a link. A flit takes as many ticks as the denominator of the set-up cost, in flits, so
/// that all times are whole ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkCost {
    /// Ticks to start a packet: the paper's beta.
    pub setup: Ticks,
    /// Ticks of each flit.
    pub flit: Ticks,
}

/// An error in a set-up cost, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct LinkCostError(String);

impl FromStr for LinkCost {
    type Err = LinkCostError;

    fn from_str(text: &str) -> Result<LinkCost, LinkCostError> {
        let error = |fault: &str| Err(LinkCostError(format!("`{text}` {fault}")));
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
        let parts = [numerator, denominator];
        if parts.iter().any(|part| part.is_empty() || !is_number(part)) {
            return error(
                "is not a set-up cost; give an integer or a fraction of a flit's time, for example \
                 20 or 3/2",
            );
        }
        // A text of digits alone fails to parse only if the number is too large.
        let [numerator, denominator] = parts.map(|part| part.parse().unwrap_or(u64::MAX));
        if denominator == 0 {
            return error("divides by 0");
        }
        let shared = greatest_common_divisor(numerator.into(), denominator.into()) as u64;
        let (setup, flit) = (numerator / shared, denominator / shared);
        let is_limited = setup <= MAX_NUMERATOR && flit <= MAX_DENOMINATOR;
        match is_limited && numerator < u64::MAX && denominator < u64::MAX {
            true => Ok(LinkCost {
                setup: setup.into(),
                flit: flit.into(),
            }),
            false => error(&format!(
                "is too fine or too large: at most {MAX_NUMERATOR}/{MAX_DENOMINATOR} in its terms"
            )),
        }
    }
}

impl LinkCost {
    /// Returns the time of a packet of `flits` flits on a link.
    pub fn packet(self, flits: u64) -> Ticks {
        self.stream(1, flits)
    }

    /// Returns the time of `packets` packets with `flits` flits in total on a link.
    pub fn stream(self, packets: u64, flits: u64) -> Ticks {
        self.setup * Ticks::from(packets) + self.flit * Ticks::from(flits)
    }

    /// Returns the time of a message on a link in even packets of at most `cap` flits.
    pub fn capped(self, flits: u64, cap: u64) -> Ticks {
        self.stream(flits.div_ceil(cap), flits)
    }

    /// Returns a time in units of a flit's time, for output.
    pub fn exact(self, time: Ticks) -> Fraction {
        Fraction::new(time, self.flit)
    }
}

/// A nonnull message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The destination.
    pub pe: PeId,
    /// The links on its path: the depth of its PE.
    pub hops: u64,
    /// The length.
    pub flits: u64,
}

/// Returns the nonnull messages, farthest destination first, ties by index. `flits[i]` is L_i.
pub fn messages(tree: &Tree, flits: &[u64]) -> Vec<Message> {
    let message = |pe: PeId| Message {
        pe,
        hops: tree.depth(pe).into(),
        flits: flits[pe.index()],
    };
    let order = farthest_first(tree, flits);
    order.into_iter().map(message).collect()
}

/// The flits of one message in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The destination.
    pub pe: PeId,
    /// The number of flits.
    pub flits: u64,
}

/// Consecutive equal packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The destination; the farthest one if the packets mix messages.
    pub pe: PeId,
    /// The number of flits for it in each packet.
    pub flits: u64,
    /// The flits in each packet for PEs on the way to it, farthest first; mostly none.
    pub also: Vec<Part>,
    /// The number of packets.
    pub packets: u64,
}

impl Run {
    /// Creates packets for one PE.
    pub fn new(pe: PeId, flits: u64, packets: u64) -> Run {
        Run {
            pe,
            flits,
            also: Vec::new(),
            packets,
        }
    }

    /// Returns the size of each packet.
    pub fn size(&self) -> u64 {
        let also = self.also.iter().map(|part| part.flits);
        also.fold(self.flits, u64::saturating_add)
    }

    /// Returns the flits of each message in a packet, farthest destination first.
    pub fn parts(&self) -> impl Iterator<Item = Part> {
        let first = Part {
            pe: self.pe,
            flits: self.flits,
        };
        std::iter::once(first).chain(self.also.iter().copied())
    }
}

/// Cuts a message into even packets, the larger ones first: `flits mod packets` of them have one flit
/// more than the others.
pub fn even(pe: PeId, flits: u64, packets: u64) -> impl Iterator<Item = Run> {
    let larger = flits % packets;
    let run = move |flits, packets| Run::new(pe, flits, packets);
    let runs = [
        run(flits / packets + 1, larger),
        run(flits / packets, packets - larger),
    ];
    runs.into_iter().filter(|run| run.packets > 0)
}

/// Sends a packet that takes `ticks` on each link through the ports of these senders, P0's first, and
/// returns when it is complete at its destination; `free` has the time from which each port is free. Packets
/// that meet anywhere arrive in the order in which P0 sends them, so one pass is exact.
pub fn send(free: &mut [Ticks], way: &[u32], ticks: Ticks) -> Ticks {
    let mut whole = 0;
    for &sender in way {
        let free = &mut free[sender as usize];
        whole = whole.max(*free) + ticks;
        *free = whole;
    }
    whole
}

/// The times when a packet of a dispatch sequence crosses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatched {
    /// Time when P0 begins to send it.
    pub leaves: Ticks,
    /// Times when it is complete at its destinations, farthest first.
    pub whole: SmallVec<[Ticks; 1]>,
    /// For each link on its way, when it occupies the link.
    pub links: Vec<[Ticks; 2]>,
}

/// Simulates a dispatch sequence packet by packet, each in as many operations as its path has links.
#[derive(Clone, Debug)]
pub struct Timetable<'a> {
    tree: &'a Tree,
    cost: LinkCost,
    /// Time from which each send port is free.
    free: Vec<Ticks>,
    /// The senders of packets for `to`, P0 first.
    way: Vec<u32>,
    to: PeId,
}

impl<'a> Timetable<'a> {
    /// Creates the state before the first packet.
    pub fn new(tree: &'a Tree, cost: LinkCost) -> Timetable<'a> {
        Timetable {
            tree,
            cost,
            free: vec![0; tree.len()],
            way: Vec::new(),
            to: PeId::ROOT,
        }
    }

    /// Sends the next packet of a run from P0. At each destination it leaves the flits for that PE.
    pub fn dispatch(&mut self, run: &Run) -> Dispatched {
        if run.pe != self.to {
            self.to = run.pe;
            self.way = way(self.tree, run.pe);
        }
        let leaves = self.free[PeId::ROOT.index()];
        let (mut size, mut also) = (run.size(), &run.also[..]);
        let mut whole = SmallVec::new();
        let mut links = Vec::with_capacity(self.way.len());
        let mut end = 0;
        for (hop, &sender) in self.way.iter().enumerate() {
            let free = &mut self.free[sender as usize];
            let begin = end.max(*free);
            end = begin + self.cost.packet(size);
            *free = end;
            links.push([begin, end]);
            let next = self.way.get(hop + 1).copied();
            if let Some((nearest, farther)) = also.split_last()
                && Some(nearest.pe.0) == next
            {
                whole.push(end);
                size -= nearest.flits;
                also = farther;
            }
        }
        whole.push(end);
        whole.reverse();
        Dispatched {
            leaves,
            whole,
            links,
        }
    }
}

/// Returns the indices of the senders of packets for a PE, P0's first.
pub fn way(tree: &Tree, pe: PeId) -> Vec<u32> {
    let mut way: Vec<u32> = tree.way_to(pe).into_iter().map(|pe| pe.0).collect();
    way.pop();
    way
}

/// Returns the best number of packets of one message (paper 003, section 5.1, whose integer problem this
/// solves exactly): the smallest r in `1..=flits` that minimises `per_packet * r + per_size * ceil(flits / r)`.
///
/// It tries about `2 * sqrt(2) * flits^(1/4)` values at most: every best r is between the roots of the
/// same expression without the rounding, minus a value that is known to be reached, and so is its
/// `ceil(flits / r)`; the fewer of both are tried. Products of the arguments, times 4, must fit into
/// 128 bits.
pub fn best_count(per_packet: Ticks, per_size: Ticks, flits: u64) -> u64 {
    if per_size == 0 {
        return 1;
    }
    if per_packet == 0 {
        return flits;
    }
    let product = per_packet * per_size * Ticks::from(flits);
    let value = |r: u64| per_packet * Ticks::from(r) + per_size * Ticks::from(flits.div_ceil(r));
    let near = (per_size * Ticks::from(flits) / per_packet).isqrt();
    let near = near.clamp(1, flits.into()) as u64;
    let reached = value(near).min(value(flits.min(near + 1)));
    // Not less than 0 except for rounding: a sum is not less than twice the root of the product.
    let width = (reached * reached).saturating_sub(4 * product).isqrt() + 1;
    let range = |factor: Ticks| {
        let ends = [reached.saturating_sub(width), reached + width];
        let [low, high] = ends.map(|end| (end / (2 * factor)).clamp(1, flits.into()) as u64);
        low..=flits.min(high + 1)
    };
    let best = match per_packet >= per_size {
        true => range(per_packet).min_by_key(|&r| (value(r), r)),
        false => {
            let counts = range(per_size).map(|size| flits.div_ceil(size));
            counts.min_by_key(|&r| (value(r), r))
        }
    };
    best.unwrap_or(near)
}

/// Returns the best packet count of a message that is the only one on its path.
pub fn best_alone(cost: LinkCost, message: &Message) -> u64 {
    let per_size = cost.flit * Ticks::from(message.hops - 1);
    best_count(cost.setup, per_size, message.flits)
}

/// Returns the time when the last of `packets` even packets of a single message is complete at its
/// destination: alpha of Lemma 12.
pub fn time_alone(cost: LinkCost, message: &Message, packets: u64) -> Ticks {
    let largest = message.flits.div_ceil(packets);
    let behind = cost.packet(largest) * Ticks::from(message.hops - 1);
    cost.stream(packets, message.flits) + behind
}
