//! Total exchange over the edges of a tree: every PE has a message for every other (ours).
//!
//! Each flit takes the only way there is. An arc sends the flit that has most hops to go first, and
//! of these the one that came first; of those that came together, the one whose destination follows
//! its source most closely in number, so that sources take turns at destinations. PEs keep what has
//! to wait. In all of this module `flits` has a
//! row for each source with its flits for each destination, and the message from P_i to P_j of N
//! PEs is number `i * N + j`.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use super::arcs::Arcs;
use super::ports::Ports;
use super::timetable::{Legs, Timetable};
use crate::{MessageId, PeId, Tree};

/// The message from one of so many PEs to another.
pub fn message(source: PeId, destination: PeId, pes: usize) -> MessageId {
    MessageId((source.index() * pes + destination.index()) as u64)
}

/// The crossings of flits that an exchange takes, of which each is planned by itself.
pub fn crossings(tree: &Tree, flits: &[Vec<u64>]) -> u64 {
    let by_source = tree.pes().map(|pe| {
        let seen = tree.rerooted(pe);
        let hops = seen.pes().map(|to| {
            let hops = u64::from(seen.depth(to));
            flits[pe.index()][to.index()].saturating_mul(hops)
        });
        hops.fold(0, u64::saturating_add)
    });
    by_source.fold(0, u64::saturating_add)
}

/// By arc, the flits that cross it.
fn loads(tree: &Tree, arcs: &Arcs, flits: &[Vec<u64>]) -> Vec<u64> {
    let mut loads = vec![0; arcs.len()];
    for pe in tree.pes() {
        let seen = tree.rerooted(pe);
        let row = &flits[pe.index()];
        let below = seen.subtree_sums(|to| row[to.index()]);
        for to in seen.pes() {
            if let Some(from) = seen.parent(to) {
                let arc = arcs.between(from, to);
                loads[arc] += below[to.index()];
            }
        }
    }
    loads
}

/// Steps that no exchange takes less than where a PE has a port for each neighbour: the flits of the
/// fullest arc.
pub fn least_steps_of_all_ports(tree: &Tree, flits: &[Vec<u64>]) -> u64 {
    let loads = loads(tree, &Arcs::of(tree), flits);
    loads.into_iter().max().unwrap_or(0)
}

/// Steps that no exchange takes less than where a PE sends one flit and takes one flit a step: the
/// flits of the busiest port.
pub fn least_steps(tree: &Tree, flits: &[Vec<u64>]) -> u64 {
    let arcs = Arcs::of(tree);
    let loads = loads(tree, &arcs, flits);
    let ports = at_ports(&arcs, tree.len(), &loads);
    ports.into_iter().flatten().max().unwrap_or(0)
}

/// By PE, what crosses the arcs from it, and what crosses those to it.
fn at_ports(arcs: &Arcs, pes: usize, loads: &[u64]) -> [Vec<u64>; 2] {
    let mut ports = [vec![0; pes], vec![0; pes]];
    for (arc, load) in loads.iter().enumerate() {
        for (port, pe) in ports.iter_mut().zip(arcs.ends(arc)) {
            port[pe.index()] += load;
        }
    }
    ports
}

/// Flits of a message that wait at a PE for an arc; the first one to be sent is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    hops_to_go: u32,
    /// The step in which they came, 0 where they start.
    came: Reverse<u64>,
    /// By how much the destination's number follows the source's, around all PEs.
    turn: Reverse<usize>,
    message: Reverse<MessageId>,
    offset: Reverse<u64>,
    flits: u64,
}

/// Who has what between two steps.
struct Exchange {
    pes: usize,
    arcs: Arcs,
    /// By PE, then by destination: the arc there, and how many there are on the way.
    ways: Vec<Vec<(usize, u32)>>,
    queues: Vec<BinaryHeap<Waiting>>,
    /// The arcs that flits wait for.
    ready: BTreeSet<usize>,
    /// Those over which a flit has gone, or that flits wait for now, since the step was chosen.
    changed: Vec<usize>,
    /// By arc, flits that have yet to cross it.
    todo: Vec<u64>,
    /// By PE, flits that it has yet to send, and to take.
    at_ports: [Vec<u64>; 2],
    /// By PE, flits of others that are there.
    kept: Vec<u64>,
    legs: Legs,
}

/// The plan where a PE has a port for each neighbour. It costs time and memory for each crossing.
pub fn all_ports(tree: &Tree, flits: &[Vec<u64>]) -> Timetable {
    Exchange::of(tree, flits).play(|exchange| exchange.ready.iter().copied().collect())
}

/// The plan where a PE sends one flit and takes one flit a step: in each step the arcs come first
/// whose sender or receiver has most to do yet.
pub fn one_port(tree: &Tree, flits: &[Vec<u64>]) -> Timetable {
    let exchange = Exchange::of(tree, flits);
    let mut ports = Ports::of(tree, &exchange.arcs);
    exchange.play(|exchange| {
        for &arc in &exchange.changed {
            let [from, to] = exchange.arcs.ends(arc);
            let beside = [ports.up_from(from), ports.down_to(to)];
            for arc in [Some(arc)].into_iter().chain(beside).flatten() {
                ports.rank(arc, exchange.ranks(tree, arc));
            }
        }
        ports.take(|arc| exchange.key(arc))
    })
}

/// What orders arcs, the least first, and those of the same key by number: the flits that are yet to
/// pass a port, and those that are yet to cross.
type Key = (Reverse<u64>, Reverse<u64>);

impl Exchange {
    /// Before the first step.
    fn of(tree: &Tree, flits: &[Vec<u64>]) -> Exchange {
        let pes = tree.len();
        let arcs = Arcs::of(tree);
        let todo = loads(tree, &arcs, flits);
        let mut exchange = Exchange {
            pes,
            ways: ways(tree, &arcs),
            queues: vec![BinaryHeap::new(); arcs.len()],
            ready: BTreeSet::new(),
            changed: Vec::new(),
            at_ports: at_ports(&arcs, pes, &todo),
            todo,
            kept: vec![0; pes],
            legs: Legs::over(arcs.len()),
            arcs,
        };
        for (from, row) in tree.ids().zip(flits) {
            for (to, &flits) in tree.ids().zip(row).filter(|(_, flits)| **flits > 0) {
                let waiting = Waiting {
                    hops_to_go: 0,
                    came: Reverse(0),
                    turn: Reverse((to.index() + pes - from.index()) % pes),
                    message: Reverse(message(from, to, pes)),
                    offset: Reverse(0),
                    flits,
                };
                exchange.queue(from, waiting);
            }
        }
        exchange
    }

    /// Where a message starts and ends.
    fn ends(&self, message: MessageId) -> [PeId; 2] {
        let (source, destination) = (message.index() / self.pes, message.index() % self.pes);
        [source, destination].map(|pe| PeId(pe as u32))
    }

    /// Flits that are at a PE wait for the arc to where they go.
    fn queue(&mut self, at: PeId, mut waiting: Waiting) {
        let [_, to] = self.ends(waiting.message.0);
        let (arc, hops) = self.ways[at.index()][to.index()];
        waiting.hops_to_go = hops;
        self.queues[arc].push(waiting);
        if self.ready.insert(arc) {
            self.changed.push(arc);
        }
    }

    /// By how much there is to do at its busier port, then over itself; `None` if no flit waits.
    fn key(&self, arc: usize) -> Option<Key> {
        self.queues[arc].peek()?;
        let [sends, takes] = &self.at_ports;
        let [from, to] = self.arcs.ends(arc).map(PeId::index);
        let busiest = sends[from].max(takes[to]);
        Some((Reverse(busiest), Reverse(self.todo[arc])))
    }

    /// Where an arc stands among those from or to the children of a PE. If a child has more to do
    /// than the PE, the first by key is the first by what the child has to do, and else by what is
    /// to cross the arc.
    fn ranks(&self, tree: &Tree, arc: usize) -> Option<[Key; 2]> {
        self.queues[arc].peek()?;
        let [sends, takes] = &self.at_ports;
        let [from, to] = self.arcs.ends(arc);
        let at_child = match tree.parent(to) == Some(from) {
            true => takes[to.index()],
            false => sends[from.index()],
        };
        let ranks = [at_child, 0].map(|port| (Reverse(port), Reverse(self.todo[arc])));
        Some(ranks)
    }

    /// Plays all steps, in each over the arcs that are chosen.
    fn play(mut self, mut choose: impl FnMut(&Exchange) -> Vec<usize>) -> Timetable {
        let (mut step, mut most_kept) = (0, 0);
        while !self.ready.is_empty() {
            step += 1;
            let taken = choose(&self);
            self.changed.clear();
            let crossing: Vec<_> = taken
                .into_iter()
                .filter_map(|arc| Some((self.arcs.to(arc), self.send(arc, step)?)))
                .collect();
            for (to, mut flit) in crossing {
                if self.ends(flit.message.0)[1] == to {
                    continue;
                }
                flit.came = Reverse(step);
                self.queue(to, flit);
                let kept = &mut self.kept[to.index()];
                *kept += 1;
                most_kept = most_kept.max(*kept);
            }
        }
        Timetable::of(self.legs.into_legs(), most_kept)
    }

    /// The flit that crosses an arc; `None` if none waits for it.
    fn send(&mut self, arc: usize, step: u64) -> Option<Waiting> {
        let queue = &mut self.queues[arc];
        let first = queue.pop()?;
        if first.flits > 1 {
            queue.push(Waiting {
                offset: Reverse(first.offset.0 + 1),
                flits: first.flits - 1,
                ..first
            });
        }
        if queue.is_empty() {
            self.ready.remove(&arc);
        }
        self.changed.push(arc);
        let ends = self.arcs.ends(arc);
        self.todo[arc] -= 1;
        for (port, pe) in self.at_ports.iter_mut().zip(ends) {
            port[pe.index()] -= 1;
        }
        if first.came.0 > 0 {
            self.kept[ends[0].index()] -= 1;
        }
        let Reverse(message) = first.message;
        self.legs.put(arc, ends, step, (message, first.offset.0));
        Some(Waiting { flits: 1, ..first })
    }
}

/// By PE, then by destination: the arc there, and how many there are on the way.
fn ways(tree: &Tree, arcs: &Arcs) -> Vec<Vec<(usize, u32)>> {
    let mut ways = vec![vec![(0, 0); tree.len()]; tree.len()];
    for destination in tree.pes() {
        let seen = tree.rerooted(destination);
        for pe in seen.pes() {
            if let Some(next) = seen.parent(pe) {
                let way = (arcs.between(pe, next), seen.depth(pe));
                ways[pe.index()][destination.index()] = way;
            }
        }
    }
    ways
}

#[cfg(test)]
mod tests;
