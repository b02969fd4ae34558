//! Total exchange over the edges of a tree: every PE has a message for every other PE (a new
//! method).
//!
//! Each flit takes the only path. An arc sends the flit with the most hops left; ties go to the
//! flit that arrived first, then to the one whose destination's number follows its source's most
//! closely, so that sources alternate at destinations. PEs keep flits that have to wait. In this
//! module `flits` has a row for each source with its flits for each destination, and the message
//! from P_i to P_j of N PEs has the number `i * N + j`.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use flitcast_proto::{MessageId, PeId, Tree};

use super::arcs::Arcs;
use super::ports::Ports;
use super::timetable::{HopList, Timetable};

/// Returns the message from one of `pes` PEs to another.
pub fn message(source: PeId, destination: PeId, pes: usize) -> MessageId {
    MessageId((source.index() * pes + destination.index()) as u64)
}

/// Returns the source and the destination of a message.
pub fn ends(message: MessageId, pes: usize) -> [PeId; 2] {
    [message.index() / pes, message.index() % pes].map(|pe| PeId(pe as u32))
}

/// Returns the number of crossings of single flits in an exchange.
pub fn crossings(tree: &Tree, flits: &[Vec<u64>]) -> u64 {
    crossings_by(tree, |from, to| flits[from.index()][to.index()])
}

/// Returns the number of crossings in an exchange in which `items` returns the number of items from one
/// PE to another.
pub(super) fn crossings_by(tree: &Tree, items: impl Fn(PeId, PeId) -> u64) -> u64 {
    let by_source = tree.pes().map(|from| {
        let seen = tree.rerooted(from);
        let hops = seen.pes().map(|to| {
            let hops = u64::from(seen.depth(to));
            items(from, to).saturating_mul(hops)
        });
        hops.fold(0, u64::saturating_add)
    });
    by_source.fold(0, u64::saturating_add)
}

/// Returns for each arc the flits that cross it.
fn loads(tree: &Tree, arcs: &Arcs, flits: &[Vec<u64>]) -> Vec<u64> {
    let mut loads = vec![0; arcs.len()];
    for pe in tree.pes() {
        let seen = tree.rerooted(pe);
        let row = &flits[pe.index()];
        let below = seen.subtree_sums(|to| row[to.index()]);
        for [from, to] in seen.edges() {
            loads[arcs.between(from, to)] += below[to.index()];
        }
    }
    loads
}

/// Returns a lower bound on the steps of an exchange if a PE has a port for each neighbour: the
/// flits of the fullest arc.
pub fn least_steps_of_all_ports(tree: &Tree, flits: &[Vec<u64>]) -> u64 {
    let loads = loads(tree, &Arcs::of(tree), flits);
    loads.into_iter().max().unwrap_or(0)
}

/// Returns a lower bound on the steps of an exchange if a PE sends one flit and receives one flit a
/// step: the flits of the busiest port.
pub fn least_steps(tree: &Tree, flits: &[Vec<u64>]) -> u64 {
    let arcs = Arcs::of(tree);
    let loads = loads(tree, &arcs, flits);
    let ports = at_ports(&arcs, tree.len(), &loads);
    ports.into_iter().flatten().max().unwrap_or(0)
}

/// Returns for each PE the flits over the arcs from it, and the flits over the arcs to it.
fn at_ports(arcs: &Arcs, pes: usize, loads: &[u64]) -> [Vec<u64>; 2] {
    let mut ports = [vec![0; pes], vec![0; pes]];
    for (arc, load) in loads.iter().enumerate() {
        for (port, pe) in ports.iter_mut().zip(arcs.ends[arc]) {
            port[pe.index()] += load;
        }
    }
    ports
}

/// Flits of a message that wait at a PE for an arc; the greatest is sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    hops_left: u32,
    /// The step in which the flits arrived, 0 at their source.
    arrived: Reverse<u64>,
    /// The destination's number minus the source's, modulo the number of PEs.
    turn: Reverse<usize>,
    message: Reverse<MessageId>,
    offset: Reverse<u64>,
    flits: u64,
}

/// The positions of all flits between two steps.
struct Exchange {
    pes: usize,
    arcs: Arcs,
    /// For each PE and destination: the next arc, and the number of arcs on the path.
    ways: Vec<Vec<(usize, u32)>>,
    queues: Vec<BinaryHeap<Waiting>>,
    /// The arcs that flits wait for.
    ready: BTreeSet<usize>,
    /// The arcs that a flit has crossed, or that flits began to wait for, since the last choice.
    changed: Vec<usize>,
    /// For each arc, the flits that have yet to cross it.
    todo: Vec<u64>,
    /// For each PE, the flits that it has yet to send, and to receive.
    at_ports: [Vec<u64>; 2],
    hops: HopList,
}

/// Plans an exchange in which a PE has a port for each neighbour. Time and memory grow with the
/// number of crossings.
pub fn all_ports(tree: &Tree, flits: &[Vec<u64>]) -> Timetable {
    Exchange::of(tree, flits).play(|exchange| exchange.ready.iter().copied().collect())
}

/// Plans an exchange in which a PE sends one flit and receives one flit a step: in each step the
/// arcs come first whose sender or receiver has the most flits left.
pub fn one_port(tree: &Tree, flits: &[Vec<u64>]) -> Timetable {
    let exchange = Exchange::of(tree, flits);
    let mut ports = Ports::of(tree, &exchange.arcs);
    exchange.play(|exchange| {
        for &arc in &exchange.changed {
            let [from, to] = exchange.arcs.ends[arc];
            let beside = [ports.up_from(from), ports.down_to(to)];
            for arc in [Some(arc)].into_iter().chain(beside).flatten() {
                ports.rank(arc, exchange.ranks(tree, arc));
            }
        }
        ports.take(|arc| exchange.key(arc))
    })
}

/// The order of arcs, least first, then by number: the flits left at the busier port, and the flits
/// that have yet to cross.
type Key = (Reverse<u64>, Reverse<u64>);

impl Exchange {
    /// Creates the state before the first step.
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
            hops: HopList::over(arcs.len()),
            arcs,
        };
        for (from, row) in tree.ids().zip(flits) {
            for (to, &flits) in tree.ids().zip(row).filter(|(_, flits)| **flits > 0) {
                let waiting = Waiting {
                    hops_left: 0,
                    arrived: Reverse(0),
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

    /// Queues flits at a PE for the arc to their destination.
    fn queue(&mut self, at: PeId, mut waiting: Waiting) {
        let [_, to] = ends(waiting.message.0, self.pes);
        let (arc, hops) = self.ways[at.index()][to.index()];
        waiting.hops_left = hops;
        self.queues[arc].push(waiting);
        if self.ready.insert(arc) {
            self.changed.push(arc);
        }
    }

    /// Returns the key of an arc: the flits left at its busier port, then over itself; `None` if no
    /// flit waits.
    fn key(&self, arc: usize) -> Option<Key> {
        self.queues[arc].peek()?;
        let [sends, takes] = &self.at_ports;
        let [from, to] = self.arcs.ends[arc].map(PeId::index);
        let busiest = sends[from].max(takes[to]);
        Some((Reverse(busiest), Reverse(self.todo[arc])))
    }

    /// Returns the ranks of an arc among those from or to the children of a PE. If a child has more
    /// flits left than the PE, the first arc by key is the first by the child's flits, and
    /// otherwise by the flits left over the arc.
    fn ranks(&self, tree: &Tree, arc: usize) -> Option<[Key; 2]> {
        self.queues[arc].peek()?;
        let [sends, takes] = &self.at_ports;
        let [from, to] = self.arcs.ends[arc];
        let at_child = match tree.parent(to) == Some(from) {
            true => takes[to.index()],
            false => sends[from.index()],
        };
        let ranks = [at_child, 0].map(|port| (Reverse(port), Reverse(self.todo[arc])));
        Some(ranks)
    }

    /// Runs all steps, in each over the chosen arcs.
    fn play(mut self, mut choose: impl FnMut(&Exchange) -> Vec<usize>) -> Timetable {
        let mut step = 0;
        while !self.ready.is_empty() {
            step += 1;
            let taken = choose(&self);
            self.changed.clear();
            let crossing: Vec<_> = taken
                .into_iter()
                .filter_map(|arc| Some((self.arcs.to(arc), self.send(arc, step)?)))
                .collect();
            for (to, mut flit) in crossing {
                if ends(flit.message.0, self.pes)[1] == to {
                    continue;
                }
                flit.arrived = Reverse(step);
                self.queue(to, flit);
            }
        }
        self.hops.finish()
    }

    /// Sends the next flit over an arc and returns it; `None` if none waits.
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
        let ends = self.arcs.ends[arc];
        self.todo[arc] -= 1;
        for (port, pe) in self.at_ports.iter_mut().zip(ends) {
            port[pe.index()] -= 1;
        }
        let Reverse(message) = first.message;
        self.hops.put(arc, ends, step, (message, first.offset.0));
        Some(Waiting { flits: 1, ..first })
    }
}

/// Returns for each PE and destination the next arc and the number of arcs on the path.
fn ways(tree: &Tree, arcs: &Arcs) -> Vec<Vec<(usize, u32)>> {
    let mut ways = vec![vec![(0, 0); tree.len()]; tree.len()];
    for destination in tree.pes() {
        let seen = tree.rerooted(destination);
        for [next, pe] in seen.edges() {
            let way = (arcs.between(pe, next), seen.depth(pe));
            ways[pe.index()][destination.index()] = way;
        }
    }
    ways
}

#[cfg(test)]
mod tests;
