//! Gossip over the edges of a tree: the message of each PE goes to all other PEs.
//!
//! Each flit crosses each edge once, away from its source. A PE queues messages for each neighbour,
//! its own first, then in the order of arrival; an arc completes a message before it starts the
//! next. In this module `flits[i]` is the length of P_i's message, and messages have the numbers of
//! their sources. PEs keep flits that they cannot forward yet. With one port to send and one to receive,
//! the arcs that have a flit to send are visited in an order in each step, and those with free ports cross.
//! All of this is new; the paper's algorithms are in [`super::ring_emulation`] and
//! [`super::gossip_in_cycles`].

use flitcast_proto::{PeId, Tree};

use super::arcs::Arcs;
use super::farthest_first::plan_scatter_by_branch;
use super::ports::Ports;
use super::timetable::{HopList, Timetable, hop};

/// Returns a lower bound on the steps of a gossip if a PE has a port for each neighbour: the flits
/// that a PE receives over one of its edges take as long as a scatter over that edge, backwards in
/// time.
pub fn least_steps_of_all_ports(tree: &Tree, flits: &[u64]) -> u64 {
    let by_receiver = tree.pes().map(|pe| {
        let seen = tree.rerooted(pe);
        let mut others = flits.to_vec();
        others[pe.index()] = 0;
        let plans = plan_scatter_by_branch(&seen, &others);
        plans.iter().map(|plan| plan.arrival_step).max()
    });
    by_receiver.flatten().max().unwrap_or(0)
}

/// Returns a lower bound on the steps of a gossip if a PE sends one flit a step: it sends each
/// neighbour all flits that do not come from there, and the last flit to the k-th neighbour is then
/// forwarded through the branch behind it.
pub fn least_steps(tree: &Tree, flits: &[u64]) -> u64 {
    let total: u64 = flits.iter().sum();
    let by_sender = tree.pes().map(|pe| {
        let seen = tree.rerooted(pe);
        let behind = seen.subtree_sums(|pe| flits[pe.index()]);
        let token = seen.token_broadcast();
        let mut sent = 0u64;
        let steps = token.order(seen.root()).iter().map(|neighbour| {
            let sends = total - behind[neighbour.index()];
            sent += sends;
            match sends {
                0 => 0,
                _ => sent + token.b(*neighbour),
            }
        });
        steps.max().unwrap_or(0)
    });
    by_sender.max().unwrap_or(0)
}

/// The step in which the first flit of a message crosses an arc.
#[derive(Clone, Copy, Debug)]
struct Begin {
    source: PeId,
    step: u64,
}

/// Plans with a port for each neighbour: no arc idles while flits wait for it, which is optimal for
/// any lengths. The flits of a message follow each other without a gap over every arc.
pub fn all_ports(tree: &Tree, flits: &[u64]) -> Timetable {
    let arcs = Arcs::of(tree);
    let into = arcs.reversed();
    let mut begins: Vec<Vec<Begin>> = vec![Vec::new(); arcs.len()];
    for arc in arcs.in_order_of_flow(tree) {
        let from = arcs.from(arc);
        let mut queue = vec![Begin {
            source: from,
            step: 0,
        }];
        let others = arcs.out_of(from).filter(|other| *other != arc);
        queue.extend(others.flat_map(|other| begins[into[other]].iter().copied()));
        queue.retain(|begin| flits[begin.source.index()] > 0);
        // The sort is stable: messages that arrive in the same step stay in the order of their
        // neighbours.
        queue.sort_by_key(|begin| begin.step);
        let mut free = 1;
        for next in &mut queue {
            next.step = free.max(next.step + 1);
            free = next.step + flits[next.source.index()];
        }
        begins[arc] = queue;
    }
    let hops = (0..arcs.len()).flat_map(|arc| {
        let (begins, ends) = (begins[arc].iter(), arcs.ends[arc]);
        begins.map(move |Begin { source, step }| {
            let length = flits[source.index()];
            hop((*source).into(), ends, [0, length], *step)
        })
    });
    Timetable::of(hops.collect())
}

/// The order of arcs in a step. Neither order is better on every tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// First the receiver with the least flits to forward now, then the one with the most flits
    /// left to send.
    Hungry,
    /// First the receivers with more flits left to send than they have; among these the one with
    /// the largest shortage and the longest branch behind it.
    Needy,
}

/// A message that has arrived at a PE, or starts there.
#[derive(Clone, Copy, Debug)]
struct Held {
    source: PeId,
    /// The neighbour that sends the message, or its source if it starts here.
    from: PeId,
    /// The number of its flits that are here.
    here: u64,
}

/// The next flit that a PE sends over an arc.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// The position of the message among those of the sender.
    place: usize,
    /// The number of its flits that have crossed.
    sent: u64,
}

/// The positions of all flits between two steps.
struct Flood<'a> {
    flits: &'a [u64],
    arcs: Arcs,
    /// For each arc, the arc in the other direction.
    reversed: Vec<usize>,
    /// For each PE, its messages in the order of their arrival, its own first.
    held: Vec<Vec<Held>>,
    cursors: Vec<Cursor>,
    /// For each arc, whether its sender has a flit for it now.
    is_ready: Vec<bool>,
    /// Arcs that a flit has crossed, or that have a flit to send now, since they were ranked.
    changed: Vec<usize>,
    /// For each arc, the position of the message in progress among those of the receiver.
    arriving: Vec<usize>,
    /// For each arc, the flits that its sender has for it, and the sum over all arcs of a PE.
    queued: Vec<u64>,
    queued_at: Vec<u64>,
    /// For each arc, the flits that have yet to cross it, and the sum over all arcs of a PE.
    todo: Vec<u64>,
    todo_at: Vec<u64>,
}

/// Plans a gossip by an order. Time and memory grow with the number of flits times PEs.
pub fn one_port(tree: &Tree, flits: &[u64], order: Order) -> Timetable {
    let mut flood = Flood::of(tree, flits);
    let precedence = Precedence::of(tree, &flood.arcs, order);
    let mut ports = Ports::of(tree, &flood.arcs);
    let mut hops = HopList::over(flood.arcs.len());
    let mut left: u64 = flood.todo_at.iter().sum();
    let mut step = 0;
    while left > 0 {
        step += 1;
        for arc in std::mem::take(&mut flood.changed) {
            let into = flood.arcs.ends[arc].map(|pe| ports.down_to(pe));
            let of_edge = [arc, flood.reversed[arc]];
            for arc in into.into_iter().flatten().chain(of_edge) {
                let rank = precedence.rank(&flood, tree, arc);
                ports.rank(arc, rank.map(|rank| [rank]));
            }
        }
        let taken = ports.take(|arc| precedence.key(&flood, arc));
        left -= taken.len() as u64;
        let crossing: Vec<(usize, Held, u64)> = taken
            .into_iter()
            .filter_map(|arc| flood.next(arc).map(|(held, flit)| (arc, held, flit)))
            .collect();
        for (arc, held, flit) in &crossing {
            flood.send(*arc, held);
            let flit = (held.source.into(), *flit);
            hops.put(*arc, flood.arcs.ends[*arc], step, flit);
        }
        for (arc, held, flit) in &crossing {
            flood.take(*arc, held, *flit);
        }
    }
    hops.finish()
}

/// The order of arcs, least first, then by number.
type Key = (i64, i64, i64);

/// An order on a tree.
struct Precedence {
    order: Order,
    /// For each arc, the steps that a flit at its receiver needs to reach all PEs behind it, one
    /// arc a step.
    branches: Vec<i64>,
}

impl Precedence {
    fn of(tree: &Tree, arcs: &Arcs, order: Order) -> Precedence {
        let branches = match order {
            Order::Hungry => Vec::new(),
            Order::Needy => steps_of_branches(tree, arcs),
        };
        Precedence { order, branches }
    }

    /// Returns the key of an arc, or `None` if it has nothing to send now.
    fn key(&self, flood: &Flood, arc: usize) -> Option<Key> {
        let to = flood.arcs.to(arc).index();
        let todo = flood.todo[arc] as i64;
        let waits = (flood.queued_at[to] - flood.queued[flood.reversed[arc]]) as i64;
        let out = flood.todo_at[to] as i64;
        let key = match self.order {
            Order::Hungry => (waits, -out, -todo),
            Order::Needy => {
                let urgency = 4 * waits - out - self.branches[arc];
                (i64::from(out <= waits), urgency, -todo)
            }
        };
        flood.is_ready[arc].then_some(key)
    }

    /// Returns the rank of an arc among those from or to the children of a PE. Ranks change less
    /// often than the keys of arcs to one PE, but have the same order: the flits that the PE has to
    /// forward are common to all of them except for those from or to their senders. A PE with
    /// several neighbours has more flits left to send than it has now while any arc to it is ready.
    fn rank(&self, flood: &Flood, tree: &Tree, arc: usize) -> Option<Key> {
        let [from, to] = flood.arcs.ends[arc];
        if tree.parent(to) == Some(from) {
            return self.key(flood, arc);
        }
        let todo = flood.todo[arc] as i64;
        let of_edge = todo + flood.todo[flood.reversed[arc]] as i64;
        let rank = match self.order {
            Order::Hungry => (-of_edge, 0, -todo),
            Order::Needy => (-4 * of_edge - self.branches[arc], 0, -todo),
        };
        flood.is_ready[arc].then_some(rank)
    }
}

/// Returns for each arc the steps that a flit at its receiver needs to reach all PEs behind it, one
/// arc a step.
fn steps_of_branches(tree: &Tree, arcs: &Arcs) -> Vec<i64> {
    let mut steps = vec![0; arcs.len()];
    for pe in tree.pes() {
        let seen = tree.rerooted(pe);
        let token = seen.token_broadcast();
        for neighbour in seen.children(seen.root()) {
            let arc = arcs.between(pe, *neighbour);
            steps[arc] = token.b(*neighbour) as i64;
        }
    }
    steps
}

impl<'a> Flood<'a> {
    /// Creates the state before the first step.
    fn of(tree: &Tree, flits: &'a [u64]) -> Flood<'a> {
        let arcs = Arcs::of(tree);
        let own = |pe: PeId| Held {
            source: pe,
            from: pe,
            here: flits[pe.index()],
        };
        let held = tree.pes().map(own).map(|own| vec![own]);
        let total: u64 = flits.iter().sum();
        let below = tree.subtree_sums(|pe| flits[pe.index()]);
        let todo = (0..arcs.len()).map(|arc| {
            let [from, to] = arcs.ends[arc];
            match tree.parent(to) == Some(from) {
                true => total - below[to.index()],
                false => below[from.index()],
            }
        });
        let todo: Vec<u64> = todo.collect();
        let queued = (0..arcs.len()).map(|arc| flits[arcs.from(arc).index()]);
        let queued: Vec<u64> = queued.collect();
        let at = |of_arcs: &[u64]| {
            let sums = tree.pes().map(|pe| of_arcs[arcs.out_of(pe)].iter().sum());
            sums.collect::<Vec<u64>>()
        };
        let mut flood = Flood {
            flits,
            reversed: arcs.reversed(),
            held: held.collect(),
            cursors: vec![Cursor::default(); arcs.len()],
            is_ready: vec![false; arcs.len()],
            changed: (0..arcs.len()).collect(),
            arriving: vec![0; arcs.len()],
            queued_at: at(&queued),
            todo_at: at(&todo),
            queued,
            todo,
            arcs,
        };
        for arc in 0..flood.arcs.len() {
            flood.skip(arc);
            flood.is_ready[arc] = flood.next(arc).is_some();
        }
        flood
    }

    /// Returns the next message over an arc and the number of its flit, or `None` if there is
    /// nothing to send. An arc waits for the rest of a message that it has begun.
    fn next(&self, arc: usize) -> Option<(Held, u64)> {
        if self.queued[arc] == 0 {
            return None;
        }
        let Cursor { place, sent } = self.cursors[arc];
        let held = self.held[self.arcs.from(arc).index()][place];
        (sent < held.here).then_some((held, sent))
    }

    /// Skips null messages and those that arrived from the receiver.
    fn skip(&mut self, arc: usize) {
        let [from, to] = self.arcs.ends[arc];
        let cursor = &mut self.cursors[arc];
        let is_skipped = |held: &Held| held.from == to || self.flits[held.source.index()] == 0;
        let held = &self.held[from.index()];
        while held.get(cursor.place).is_some_and(is_skipped) {
            cursor.place += 1;
        }
    }

    fn send(&mut self, arc: usize, held: &Held) {
        let from = self.arcs.from(arc).index();
        for count in [&mut self.queued[arc], &mut self.queued_at[from]] {
            *count -= 1;
        }
        for count in [&mut self.todo[arc], &mut self.todo_at[from]] {
            *count -= 1;
        }
        let cursor = &mut self.cursors[arc];
        cursor.sent += 1;
        if cursor.sent == self.flits[held.source.index()] {
            cursor.place += 1;
            cursor.sent = 0;
            self.skip(arc);
        }
        self.is_ready[arc] = self.next(arc).is_some();
        self.changed.push(arc);
    }

    fn take(&mut self, arc: usize, held: &Held, flit: u64) {
        let [from, to] = self.arcs.ends[arc];
        let at_receiver = &mut self.held[to.index()];
        match flit {
            0 => {
                self.arriving[arc] = at_receiver.len();
                at_receiver.push(Held {
                    source: held.source,
                    from,
                    here: 1,
                });
                self.skip(self.reversed[arc]);
            }
            _ => at_receiver[self.arriving[arc]].here += 1,
        }
        let back = self.reversed[arc];
        let others = self.arcs.out_of(to).filter(|other| *other != back);
        for other in others {
            self.queued[other] += 1;
            self.queued_at[to.index()] += 1;
            if !self.is_ready[other] && self.next(other).is_some() {
                self.is_ready[other] = true;
                self.changed.push(other);
            }
        }
    }
}

#[cfg(test)]
mod tests;
