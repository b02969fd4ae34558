//! Branch and bound over dispatch sequences: exact where it comes to its end in single flits (ours).

use std::collections::BTreeMap;

use super::bounds::of_rest;
use super::model::{Message, SendPorts, Ticks};
use super::tree::{Packet, Scatter, Schedule};
use crate::{PeId, Tree};

/// Nodes of a search that are few enough for a fraction of a second.
pub const DEFAULT_NODES: u64 = 200_000;
/// Nodes that take a minute, or several.
pub const MOST_NODES: u64 = 100_000_000;

/// Grains that all messages are cut into together, about: single flits if they are fewer.
const GRAINS: u64 = 64;
/// Relays and messages that a state of the search is made of: it is copied at each of them.
const MOST_RELAYS: usize = 512;
const MOST_MESSAGES: usize = 64;
/// Numbers that states are remembered in, 16 bytes each.
const MOST_REMEMBERED: usize = 8_000_000;

/// What came of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No schedule whatever takes less than the best.
    Exhausted,
    /// There may be better ones.
    Open,
}

/// Looks for a schedule that takes less than `best`, and not less than `bound`, in at most so many
/// nodes: packets that are appended to what has been sent.
pub fn search(
    tree: &Tree,
    scatter: &Scatter,
    bound: Ticks,
    nodes: u64,
    best: &mut Schedule,
) -> Outcome {
    let messages = &scatter.messages;
    if messages.len() > MOST_MESSAGES || scatter.relays() > MOST_RELAYS {
        return Outcome::Open;
    }
    let flits: u64 = messages.iter().map(|message| message.flits).sum();
    let grain = flits.div_ceil(GRAINS);
    let is_below = |below: &Message| {
        let above = messages.iter();
        above
            .map(|above| tree.child_toward(above.pe, below.pe).is_some())
            .collect()
    };
    let mut search = Search {
        scatter,
        is_below: messages.iter().map(is_below).collect(),
        grain,
        bound,
        left: messages.iter().map(|message| message.flits).collect(),
        ports: SendPorts::new(scatter.relays()),
        time: 0,
        sent: Vec::new(),
        best,
        nodes,
        is_cut_short: false,
        seen: BTreeMap::new(),
        remembered: 0,
    };
    search.extend();
    match search.is_cut_short || grain > 1 {
        true => Outcome::Open,
        false => Outcome::Exhausted,
    }
}

/// Flits left of each message, and the last destination.
type Left = (Vec<u64>, Option<usize>);

struct Search<'a> {
    scatter: &'a Scatter,
    /// `[a][b]`: whether the PE of message a stands below that of b.
    is_below: Vec<Vec<bool>>,
    /// Packets have a multiple of so many flits, or all that is left of their message.
    grain: u64,
    bound: Ticks,
    left: Vec<u64>,
    ports: SendPorts,
    /// When the last packet so far is whole.
    time: Ticks,
    sent: Vec<Packet>,
    best: &'a mut Schedule,
    nodes: u64,
    is_cut_short: bool,
    /// The times of states, the time so far first: nothing is gained where all are later.
    seen: BTreeMap<Left, Vec<Vec<Ticks>>>,
    remembered: usize,
}

impl Search<'_> {
    /// Tries all that can be sent next, the deepest and the largest first.
    fn extend(&mut self) {
        if self.left.iter().all(|&left| left == 0) {
            if self.time < self.best.time {
                self.best.time = self.time;
                self.best.packets.clone_from(&self.sent);
            }
            return;
        }
        for message in 0..self.left.len() {
            // A packet for a PE below the last destination would better have gone before (Lemma 1).
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

    /// Sends a packet, goes on from there, and takes it back.
    fn append(&mut self, packet: Packet) {
        let way = self.scatter.way(packet.message);
        let free: Vec<Ticks> = way
            .iter()
            .map(|&relay| self.ports.free[relay as usize])
            .collect();
        let time = self.time;
        let ticks = self.scatter.cost.packet(packet.flits);
        self.time = time.max(self.ports.send(way, ticks));
        self.left[packet.message] -= packet.flits;
        self.sent.push(packet);
        if self.is_promising() {
            self.extend();
        }
        self.sent.pop();
        self.left[packet.message] += packet.flits;
        self.time = time;
        for (&relay, free) in way.iter().zip(free) {
            self.ports.free[relay as usize] = free;
        }
    }

    /// Whether something better may come of what has been sent.
    fn is_promising(&mut self) -> bool {
        let Scatter { cost, messages, .. } = self.scatter;
        let start = self.ports.free[PeId::ROOT.index()];
        let rest = of_rest(*cost, messages, &self.left, start);
        self.time.max(rest) < self.best.time && !self.is_dominated()
    }

    /// Whether the same was left before, with nothing later; else remembers it.
    fn is_dominated(&mut self) -> bool {
        let state: Vec<Ticks> = [self.time]
            .iter()
            .chain(&self.ports.free)
            .copied()
            .collect();
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
