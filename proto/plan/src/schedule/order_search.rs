//! A better order for a scatter over unequal links than farthest destination first: branch and bound
//! over orders, then local search (not in the papers). The distance from the lower bound is reported as
//! a gap.
//!
//! Messages stay whole and are cut into flits that relays forward as they arrive, first come, first
//! served; waiting flits stay in the network. A PE has one port to send. Equal links need no search:
//! there farthest first is optimal (paper 000, Theorem 1).

use std::collections::BTreeMap;

use flitcast_proto::{PeId, Tree};

use super::scatter::farthest_first;

/// Limit of links on the paths of all messages with which many orders can be examined.
pub const MOST_HOPS: u64 = 1 << 22;
/// Limits of messages, and of links on their paths, for branch and bound.
const MOST_SEARCHED: (usize, usize) = (64, 4096);
/// Limit of numbers in remembered states, 8 bytes each.
const MOST_REMEMBERED: usize = 8_000_000;
/// Limit of link crossings in the local search: some tenths of a second.
const MOST_SENDINGS: usize = 20_000_000;

/// A link from a parent down to a PE, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// Time for which a flit occupies the parent's port.
    pub flit: u64,
    /// Time from then until the PE can forward the flit.
    pub latency: u64,
}

/// An order of all nonnull messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// The destinations in order.
    pub order: Vec<PeId>,
    /// Time when the last flit is at its destination, in ticks.
    pub time: u64,
    /// Time with farthest first.
    pub farthest_first: u64,
    /// A lower bound for any order. If it equals `time`, the order is optimal.
    pub bound: u64,
}

/// Searches for the best order of `flits[i]` flits for each PE over `hops[i]` in at most `nodes` nodes.
/// Returns `None` if the paths have more than [`MOST_HOPS`] links, or if times would overflow.
pub fn search(tree: &Tree, flits: &[u64], hops: &[Hop], nodes: u64) -> Option<Ordered> {
    let farthest = farthest_first(tree, flits);
    let problem = Problem::of(tree, flits, hops, &farthest)?;
    // Messages are numbered farthest first.
    let given: Vec<usize> = (0..farthest.len()).collect();
    let mut by_tail = given.clone();
    by_tail.sort_by_key(|&message| std::cmp::Reverse(problem.ways[message][0].tail));
    let mut best = Best {
        time: problem.time(&given),
        order: given,
    };
    let time_farthest_first = best.time;
    best.take(&problem, by_tail);
    let start = problem.start();
    let mut bound = problem.bound(&start, &vec![false; farthest.len()]);
    if best.time > bound && problem.branch_and_bound(bound, nodes, &mut best) {
        bound = best.time;
    }
    if best.time > bound {
        problem.small_steps(bound, &mut best);
    }
    let order = best.order.iter().map(|&message| farthest[message]);
    Some(Ordered {
        order: order.collect(),
        time: best.time,
        farthest_first: time_farthest_first,
        bound,
    })
}

/// A link on the path of a message.
#[derive(Clone, Copy, Debug)]
struct Leg {
    /// The index of its port among those that send.
    port: usize,
    hop: Hop,
    /// Least time from the message's start until its first flit has arrived.
    head: u64,
    /// Time for which the message occupies the port.
    busy: u64,
    /// Least time from then until the message is at its destination.
    tail: u64,
}

/// The time from which each port is free, and the arrival of the last flit sent.
#[derive(Clone, Debug)]
struct State {
    free: Vec<u64>,
    time: u64,
}

struct Best {
    order: Vec<usize>,
    time: u64,
}

impl Best {
    /// Makes an order the best if it is better.
    fn take(&mut self, problem: &Problem, order: Vec<usize>) -> bool {
        let time = problem.time(&order);
        let is_better = time < self.time;
        if is_better {
            *self = Best { order, time };
        }
        is_better
    }
}

struct Problem {
    /// The flits of each message, farthest first, and its path from P0.
    flits: Vec<u64>,
    ways: Vec<Vec<Leg>>,
    /// The messages through each port and the index of the leg, by decreasing tail. P0's port is the
    /// first.
    through: Vec<Vec<(usize, usize)>>,
}

impl Problem {
    fn of(tree: &Tree, flits: &[u64], hops: &[Hop], messages: &[PeId]) -> Option<Problem> {
        let depths = messages.iter().map(|&pe| u64::from(tree.depth(pe)));
        if depths.sum::<u64>() > MOST_HOPS {
            return None;
        }
        let mut ports = BTreeMap::from([(tree.root(), 0)]);
        let mut problem = Problem {
            flits: messages.iter().map(|pe| flits[pe.index()]).collect(),
            ways: Vec::new(),
            through: vec![Vec::new()],
        };
        // No order takes longer than all links of all messages one after the other.
        let mut longest = 0u64;
        for (message, &pe) in messages.iter().enumerate() {
            let mut way = Vec::new();
            let mut at = pe;
            // From the destination upwards: the remaining time.
            let (mut after, mut slowest) = (0u64, 0u64);
            while let Some(parent) = tree.parent(at) {
                let hop = hops[at.index()];
                let busy = hop.flit.checked_mul(problem.flits[message])?;
                longest = longest.checked_add(busy)?.checked_add(hop.latency)?;
                slowest = slowest.max(hop.flit);
                after += hop.latency;
                let stretch = (problem.flits[message] - 1).checked_mul(slowest - hop.flit)?;
                let tail = after.checked_add(stretch)?;
                after = after.checked_add(hop.flit)?;
                let next = ports.len();
                let port = *ports.entry(parent).or_insert(next);
                problem.through.resize(ports.len(), Vec::new());
                way.push(Leg {
                    port,
                    hop,
                    head: 0,
                    busy,
                    tail,
                });
                at = parent;
            }
            way.reverse();
            let mut head = 0;
            for (place, leg) in way.iter_mut().enumerate() {
                leg.head = head;
                head += leg.hop.flit + leg.hop.latency;
                problem.through[leg.port].push((message, place));
            }
            problem.ways.push(way);
        }
        // Bounds add the same values at most once more.
        longest.checked_mul(4)?;
        let Problem { through, ways, .. } = &mut problem;
        for port in through {
            port.sort_by_key(|&(message, leg)| std::cmp::Reverse(ways[message][leg].tail));
        }
        Some(problem)
    }

    fn start(&self) -> State {
        State {
            free: vec![0; self.through.len()],
            time: 0,
        }
    }

    /// Sends a message. The time of flits between two links is convex in their number, so only the
    /// first and the last one matter.
    fn send(&self, state: &mut State, message: usize) {
        let (mut first, mut last) = (0, 0);
        for leg in &self.ways[message] {
            let begins = state.free[leg.port].max(first);
            let ends = (begins + leg.busy).max(last + leg.hop.flit);
            state.free[leg.port] = ends;
            first = begins + leg.hop.flit + leg.hop.latency;
            last = ends + leg.hop.latency;
        }
        state.time = state.time.max(last);
    }

    fn time(&self, order: &[usize]) -> u64 {
        let mut state = self.start();
        for &message in order {
            self.send(&mut state, message);
        }
        state.time
    }

    /// Returns a lower bound for any order of the remaining messages: on each port, those of the
    /// longest tails one after the other, and the shortest of their tails.
    fn bound(&self, state: &State, sent: &[bool]) -> u64 {
        let mut bound = state.time;
        for (port, through) in self.through.iter().enumerate() {
            let (mut head, mut busy) = (u64::MAX, 0);
            for &(message, leg) in through.iter().filter(|through| !sent[through.0]) {
                let leg = &self.ways[message][leg];
                head = head.min(state.free[0] + leg.head);
                busy += leg.busy;
                bound = bound.max(head.max(state.free[port]) + busy + leg.tail);
            }
        }
        bound
    }

    /// Returns whether all orders were examined, or `bound` is reached.
    fn branch_and_bound(&self, bound: u64, nodes: u64, best: &mut Best) -> bool {
        let hops: usize = self.ways.iter().map(Vec::len).sum();
        if self.ways.len() > MOST_SEARCHED.0 || hops > MOST_SEARCHED.1 {
            return false;
        }
        let mut search = Search {
            problem: self,
            bound,
            nodes,
            is_cut_short: false,
            order: Vec::new(),
            sent: vec![false; self.ways.len()],
            seen: BTreeMap::new(),
            remembered: 0,
            best,
        };
        search.extend(&self.start());
        !search.is_cut_short
    }

    /// Moves one message to another place, or swaps two, as long as that helps.
    fn small_steps(&self, bound: u64, best: &mut Best) {
        let hops: usize = self.ways.iter().map(Vec::len).sum();
        let mut trials = MOST_SENDINGS / hops.max(1);
        let count = best.order.len();
        let mut is_better = true;
        while is_better && best.time > bound {
            is_better = false;
            for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
                if from == to {
                    continue;
                }
                if trials < 2 || best.time <= bound {
                    return;
                }
                trials -= 2;
                let mut moved = best.order.clone();
                let message = moved.remove(from);
                moved.insert(to, message);
                let mut swapped = best.order.clone();
                swapped.swap(from, to);
                is_better |= best.take(self, moved) || best.take(self, swapped);
            }
        }
    }
}

struct Search<'a> {
    problem: &'a Problem,
    bound: u64,
    nodes: u64,
    is_cut_short: bool,
    order: Vec<usize>,
    sent: Vec<bool>,
    /// The states seen, by the set of sent messages. A state in which all times are later gains
    /// nothing.
    seen: BTreeMap<Vec<bool>, Vec<State>>,
    remembered: usize,
    best: &'a mut Best,
}

impl Search<'_> {
    /// Tries all messages that can be sent next, the farthest first.
    fn extend(&mut self, state: &State) {
        if self.order.len() == self.sent.len() {
            if state.time < self.best.time {
                self.best.time = state.time;
                self.best.order.clone_from(&self.order);
            }
            return;
        }
        for message in 0..self.sent.len() {
            if self.sent[message] {
                continue;
            }
            if self.best.time <= self.bound {
                return;
            }
            if self.nodes == 0 {
                self.is_cut_short = true;
                return;
            }
            self.nodes -= 1;
            let mut next = state.clone();
            self.problem.send(&mut next, message);
            self.sent[message] = true;
            self.order.push(message);
            if self.problem.bound(&next, &self.sent) < self.best.time && !self.is_dominated(&next) {
                self.extend(&next);
            }
            self.order.pop();
            self.sent[message] = false;
        }
    }

    /// Returns whether the same messages were sent before with no time later; else remembers the state.
    fn is_dominated(&mut self, state: &State) -> bool {
        let is_no_later = |seen: &State| {
            let free = seen.free.iter().zip(&state.free);
            seen.time <= state.time && free.into_iter().all(|(seen, now)| seen <= now)
        };
        let seen = self.seen.get(&self.sent);
        if seen.is_some_and(|seen| seen.iter().any(is_no_later)) {
            return true;
        }
        let size = state.free.len() + self.sent.len();
        if self.remembered + size <= MOST_REMEMBERED {
            self.remembered += size;
            let seen = self.seen.entry(self.sent.clone()).or_default();
            seen.push(state.clone());
        }
        false
    }
}

#[cfg(test)]
mod tests;
