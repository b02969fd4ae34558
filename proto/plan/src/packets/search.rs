//! Branch and bound over dispatch sequences: exact if it completes in single flits (not in the paper). Local
//! search improves a sequence by small changes, down to single flits, until none helps.

use std::collections::BTreeMap;

use flitcast_proto::{PeId, Tree};

use super::bounds::of_rest;
use super::model::{Message, Ticks, send};
use super::tree::{Packet, Scatter, Schedule};

/// Default number of nodes, which take a fraction of a second.
pub const DEFAULT_NODES: u64 = 200_000;
/// Largest number of nodes, which take several minutes.
pub const MOST_NODES: u64 = 100_000_000;

/// Approximate number of grains into which all messages together are cut: single flits if they are
/// fewer.
const GRAINS: u64 = 64;
/// Limit of relays and messages in a state of the search, which is copied at each node.
const MOST_RELAYS: usize = 512;
const MOST_MESSAGES: usize = 64;
/// Limit of numbers in remembered states, 16 bytes each.
const MOST_REMEMBERED: usize = 8_000_000;

/// Searches for a schedule that takes less than `best`, and not less than `bound`, in at most `nodes`
/// nodes: packets that are appended to a sequence. Returns whether no schedule takes less time than the
/// best.
pub fn search(
    tree: &Tree,
    scatter: &Scatter,
    bound: Ticks,
    nodes: u64,
    best: &mut Schedule,
) -> bool {
    let messages = &scatter.messages;
    if messages.len() > MOST_MESSAGES || scatter.relays() > MOST_RELAYS {
        return false;
    }
    let flits: u64 = messages.iter().map(|message| message.flits).sum();
    let grain = flits.div_ceil(GRAINS);
    let is_below = |below: &Message| {
        let above = messages.iter();
        let is_below = above.map(|above| tree.child_toward(above.pe, below.pe).is_some());
        is_below.collect()
    };
    let mut search = Search {
        scatter,
        is_below: messages.iter().map(is_below).collect(),
        grain,
        bound,
        left: messages.iter().map(|message| message.flits).collect(),
        free: vec![0; scatter.relays()],
        time: 0,
        sent: Vec::new(),
        best,
        nodes,
        is_cut_short: false,
        seen: BTreeMap::new(),
        remembered: 0,
    };
    search.extend();
    !search.is_cut_short && grain <= 1
}

/// The remaining flits of each message, and the last destination.
type Left = (Vec<u64>, Option<usize>);

struct Search<'a> {
    scatter: &'a Scatter,
    /// `[a][b]`: whether the PE of message a is below that of b.
    is_below: Vec<Vec<bool>>,
    /// The sizes of packets are multiples of this number of flits, or the whole rest of their message.
    grain: u64,
    bound: Ticks,
    left: Vec<u64>,
    /// Time from which each send port is free.
    free: Vec<Ticks>,
    /// Time when the last packet so far is complete.
    time: Ticks,
    sent: Vec<Packet>,
    best: &'a mut Schedule,
    nodes: u64,
    is_cut_short: bool,
    /// The times of states, the time so far first: a state in which all are later gains nothing.
    seen: BTreeMap<Left, Vec<Vec<Ticks>>>,
    remembered: usize,
}

impl Search<'_> {
    /// Tries all packets that can be sent next, the deepest and the largest first.
    fn extend(&mut self) {
        if self.left.iter().all(|&left| left == 0) {
            if self.time < self.best.time {
                self.best.time = self.time;
                self.best.packets.clone_from(&self.sent);
            }
            return;
        }
        for message in 0..self.left.len() {
            // A packet for a PE below the last destination would better have been sent before (Lemma
            // 1).
            let last = self.sent.last().map(|packet| packet.message);
            if last.is_some_and(|last| self.is_below[message][last]) {
                continue;
            }
            let left = self.left[message];
            for grains in (1..=left.div_ceil(self.grain)).rev() {
                if self.best.time <= self.bound {
                    return;
                }
                if self.nodes == 0 {
                    self.is_cut_short = true;
                    return;
                }
                self.nodes -= 1;
                let flits = left.min(grains * self.grain);
                self.append(Packet { message, flits });
            }
        }
    }

    /// Sends a packet, continues from there, and takes it back.
    fn append(&mut self, packet: Packet) {
        let way = &self.scatter.ways[packet.message];
        let free = way.iter().map(|&relay| self.free[relay as usize]);
        let free: Vec<Ticks> = free.collect();
        let time = self.time;
        let ticks = self.scatter.cost.packet(packet.flits);
        self.time = time.max(send(&mut self.free, way, ticks));
        self.left[packet.message] -= packet.flits;
        self.sent.push(packet);
        if self.is_promising() {
            self.extend();
        }
        self.sent.pop();
        self.left[packet.message] += packet.flits;
        self.time = time;
        for (&relay, free) in way.iter().zip(free) {
            self.free[relay as usize] = free;
        }
    }

    /// Returns whether the current sequence may lead to an improvement.
    fn is_promising(&mut self) -> bool {
        let Scatter { cost, messages, .. } = self.scatter;
        let start = self.free[PeId::ROOT.index()];
        let rest = of_rest(*cost, messages, &self.left, start);
        self.time.max(rest) < self.best.time && !self.is_dominated()
    }

    /// Returns whether the same flits were left before with no time later; else remembers the state.
    fn is_dominated(&mut self) -> bool {
        let state = [&[self.time], &self.free[..]].concat();
        let last = self.sent.last().map(|packet| packet.message);
        let place = (self.left.clone(), last);
        let is_no_later =
            |seen: &Vec<Ticks>| seen.iter().zip(&state).all(|(seen, now)| seen <= now);
        let seen = self.seen.get(&place);
        if seen.is_some_and(|seen| seen.iter().any(is_no_later)) {
            return true;
        }
        let size = state.len() + self.left.len();
        if self.remembered + size <= MOST_REMEMBERED {
            self.remembered += size;
            self.seen.entry(place).or_default().push(state);
        }
        false
    }
}

/// Limit of link crossings in all trials: some tenths of a second.
const MOST_SENDINGS: u64 = 20_000_000;

/// Accepts each improvement found, until there is none, `bound` is reached, or the limit of trials is.
pub fn improve(scatter: &Scatter, bound: Ticks, best: &mut Schedule) {
    let mut trials = Trials {
        scatter,
        best,
        left: MOST_SENDINGS,
    };
    while trials.best.time > bound
        && (trials.moves() || trials.shifts() || trials.splits_and_joins())
    {}
}

struct Trials<'a> {
    scatter: &'a Scatter,
    best: &'a mut Schedule,
    left: u64,
}

impl Trials<'_> {
    /// Makes this sequence the best if it is better, and returns whether it is.
    fn is_better(&mut self, packets: Vec<Packet>) -> bool {
        let messages = packets.iter().map(|it| &self.scatter.messages[it.message]);
        let sendings = messages.map(|message| message.hops).sum();
        self.left = self.left.saturating_sub(sendings);
        let time = self.scatter.time(&packets);
        let is_better = time < self.best.time;
        if is_better {
            *self.best = Schedule { packets, time };
        }
        is_better
    }

    /// Tries a change at all pairs of places, and returns whether the best sequence has improved.
    fn pairs(&mut self, change: impl Fn(&[Packet], usize, usize) -> Option<Vec<Packet>>) -> bool {
        let count = self.best.packets.len();
        for from in 0..count {
            for to in (0..count).filter(|&to| to != from) {
                if self.left == 0 {
                    return false;
                }
                self.left -= 1;
                let changed = change(&self.best.packets, from, to);
                if changed.is_some_and(|packets| self.is_better(packets)) {
                    return true;
                }
            }
        }
        false
    }

    /// Moves a packet to another place.
    fn moves(&mut self) -> bool {
        self.pairs(|packets, from, to| {
            let mut packets = packets.to_vec();
            let packet = packets.remove(from);
            packets.insert(to, packet);
            Some(packets)
        })
    }

    /// Moves flits from one packet of a message to another: one of them, or half.
    fn shifts(&mut self) -> bool {
        let shift = |half| {
            move |packets: &[Packet], from: usize, to: usize| {
                let is_one_message = packets[from].message == packets[to].message;
                let flits = part(packets[from], half).filter(|_| is_one_message)?;
                let mut packets = packets.to_vec();
                packets[from].flits -= flits;
                packets[to].flits += flits;
                Some(packets)
            }
        };
        self.pairs(shift(false)) || self.pairs(shift(true))
    }

    /// Moves one flit of a packet, or half of it, to another place; or joins two packets of a message.
    fn splits_and_joins(&mut self) -> bool {
        let split = |half| {
            move |packets: &[Packet], from: usize, to: usize| {
                let message = packets[from].message;
                let flits = part(packets[from], half)?;
                let mut packets = packets.to_vec();
                packets[from].flits -= flits;
                // After a later packet, so that it may be the last as well as the first.
                let place = if to > from { to + 1 } else { to };
                packets.insert(place, Packet { message, flits });
                Some(packets)
            }
        };
        let join = |packets: &[Packet], from: usize, to: usize| {
            let is_one_message = packets[from].message == packets[to].message;
            is_one_message.then(|| {
                let mut packets = packets.to_vec();
                packets[to].flits += packets[from].flits;
                packets.remove(from);
                packets
            })
        };
        self.pairs(split(true)) || self.pairs(split(false)) || self.pairs(join)
    }
}

/// Returns the number of flits that can be taken from a packet without emptying it: half, or one.
fn part(packet: Packet, half: bool) -> Option<u64> {
    let flits = if half { packet.flits / 2 } else { 1 };
    (1..packet.flits).contains(&flits).then_some(flits)
}
