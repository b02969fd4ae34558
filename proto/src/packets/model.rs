//! What a packet costs, what a dispatch sequence is, and how it plays (paper 003, chapter 2).
//!
//! A packet of p flits on a link takes the set-up cost and p: it has the sender's send port and
//! the receiver's receive port for that time. A relay sends a packet when it has all of it and its
//! send port is free, first come, first served.

use std::str::FromStr;

use thiserror::Error;

use crate::exact::{Exact, greatest_common_divisor};
use crate::{PeId, Tree};

/// A time in ticks of a [`LinkCost`]: exact, and wide enough for all within the limits of this
/// module.
pub type Ticks = u128;

/// The largest numerator and denominator of a set-up cost: with them, and with
/// [`MAX_FLITS`](super::MAX_FLITS), no product of this module leaves 128 bits.
const MAX_NUMERATOR: u64 = 1 << 32;
const MAX_DENOMINATOR: u64 = 1 << 16;

/// What a link costs. A flit takes as many ticks as the set-up cost, in flits, has for its
/// denominator, so that all times are whole ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkCost {
    /// Ticks to start a packet: the paper's beta.
    pub setup: Ticks,
    /// Ticks of each flit.
    pub flit: Ticks,
}

/// Why a text is no set-up cost.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinkCostError {
    /// Neither an integer nor a fraction.
    #[error("`{0}` is no set-up cost: an integer or a fraction of a flit's time, 20 or 3/2, say")]
    Form(String),
    /// Nothing is divided by 0.
    #[error("`{0}` divides by 0")]
    Zero(String),
    /// A fraction that times cannot be reckoned with exactly.
    #[error(
        "`{0}` is too fine or too large: at most {MAX_NUMERATOR}/{MAX_DENOMINATOR} in its terms"
    )]
    Limit(String),
}

impl FromStr for LinkCost {
    type Err = LinkCostError;

    fn from_str(text: &str) -> Result<LinkCost, LinkCostError> {
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let (numerator, denominator) = text.split_once('/').unwrap_or((text, "1"));
        let parts = [numerator, denominator];
        if parts.iter().any(|part| part.is_empty() || !is_number(part)) {
            return Err(LinkCostError::Form(text.to_owned()));
        }
        // Digits alone can be too many only.
        let [numerator, denominator] = parts.map(|part| part.parse().unwrap_or(u64::MAX));
        if denominator == 0 {
            return Err(LinkCostError::Zero(text.to_owned()));
        }
        let shared = greatest_common_divisor(numerator.into(), denominator.into()) as u64;
        let (setup, flit) = (numerator / shared, denominator / shared);
        let is_limited = setup <= MAX_NUMERATOR && flit <= MAX_DENOMINATOR;
        match is_limited && numerator < u64::MAX && denominator < u64::MAX {
            true => Ok(LinkCost {
                setup: setup.into(),
                flit: flit.into(),
            }),
            false => Err(LinkCostError::Limit(text.to_owned())),
        }
    }
}

impl LinkCost {
    /// What a packet of so many flits takes on a link.
    pub fn packet(self, flits: u64) -> Ticks {
        self.stream(1, flits)
    }

    /// What so many packets of so many flits together take on a link.
    pub fn stream(self, packets: u64, flits: u64) -> Ticks {
        self.setup * Ticks::from(packets) + self.flit * Ticks::from(flits)
    }

    /// What a message takes on a link in even packets of at most `cap` flits.
    pub fn capped(self, flits: u64, cap: u64) -> Ticks {
        self.stream(flits.div_ceil(cap), flits)
    }

    /// A time, to be printed in flits' times.
    pub fn exact(self, time: Ticks) -> Exact {
        Exact::new(time, self.flit)
    }
}

/// A nonnull message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Where it ends.
    pub pe: PeId,
    /// The links on its way: the depth of its PE.
    pub hops: u64,
    /// Its length.
    pub flits: u64,
}

/// The nonnull messages, farthest destination first, ties by index. `flits[i]` is L_i.
pub fn messages(tree: &Tree, flits: &[u64]) -> Vec<Message> {
    let nonnull = tree.pes().filter(|pe| flits[pe.index()] > 0);
    let mut all: Vec<Message> = nonnull
        .map(|pe| Message {
            pe,
            hops: tree.depth(pe).into(),
            flits: flits[pe.index()],
        })
        .collect();
    all.sort_by_key(|message| (std::cmp::Reverse(message.hops), message.pe));
    all
}

/// Packets of one size for one PE that leave P0 one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where they go.
    pub pe: PeId,
    /// The flits of each.
    pub flits: u64,
    /// How many they are.
    pub packets: u64,
}

/// A message in so many even packets, the larger ones first: `flits mod packets` of one flit more
/// than the others.
pub fn even(pe: PeId, flits: u64, packets: u64) -> impl Iterator<Item = Run> {
    let larger = flits % packets;
    let run = move |flits, packets| Run { pe, flits, packets };
    let runs = [
        run(flits / packets + 1, larger),
        run(flits / packets, packets - larger),
    ];
    runs.into_iter().filter(|run| run.packets > 0)
}

/// The send ports of P0 and the relays.
#[derive(Clone, Debug)]
pub struct SendPorts {
    /// When each is free.
    pub free: Vec<Ticks>,
}

impl SendPorts {
    /// So many, free from the beginning.
    pub fn new(count: usize) -> SendPorts {
        SendPorts {
            free: vec![0; count],
        }
    }

    /// Sends a packet that takes so long on a link over these ports, P0's first; when it is whole
    /// at its destination. Packets that meet anywhere come in the order in which P0 sends them, so
    /// that one pass is exact.
    pub fn send(&mut self, way: &[u32], ticks: Ticks) -> Ticks {
        let mut whole = 0;
        for &sender in way {
            let free = &mut self.free[sender as usize];
            whole = whole.max(*free) + ticks;
            *free = whole;
        }
        whole
    }
}

/// A packet of a dispatch sequence, and when it crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatched {
    /// Where it goes.
    pub pe: PeId,
    /// Its size.
    pub flits: u64,
    /// When P0 begins to send it.
    pub leaves: Ticks,
    /// When it is whole at its destination.
    pub whole: Ticks,
}

/// Plays a dispatch sequence packet by packet, each in as many operations as there are links on its
/// way.
#[derive(Clone, Debug)]
pub struct Timetable<'a> {
    tree: &'a Tree,
    cost: LinkCost,
    ports: SendPorts,
    /// Who sends what goes to `to`, P0 first.
    way: Vec<u32>,
    to: PeId,
}

impl<'a> Timetable<'a> {
    /// Before the first packet.
    pub fn new(tree: &'a Tree, cost: LinkCost) -> Timetable<'a> {
        Timetable {
            tree,
            cost,
            ports: SendPorts::new(tree.len()),
            way: Vec::new(),
            to: PeId::ROOT,
        }
    }

    /// P0 sends the next packet.
    pub fn dispatch(&mut self, pe: PeId, flits: u64) -> Dispatched {
        if pe != self.to {
            self.to = pe;
            self.way = way(self.tree, pe);
        }
        Dispatched {
            pe,
            flits,
            leaves: self.ports.free[PeId::ROOT.index()],
            whole: self.ports.send(&self.way, self.cost.packet(flits)),
        }
    }
}

/// The indices of those who send what goes to a PE, P0's first.
pub fn way(tree: &Tree, pe: PeId) -> Vec<u32> {
    let senders = std::iter::successors(tree.parent(pe), |&sender| tree.parent(sender));
    let mut way: Vec<u32> = senders.map(|sender| sender.0).collect();
    way.reverse();
    way
}
