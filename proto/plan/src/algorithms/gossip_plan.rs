//! Gossip over the edges of a tree: the message of each PE goes to all other PEs.
//!
//! Each flit crosses each edge once, away from its source. A PE queues messages for each neighbour,
//! its own first, then in the order of arrival; an arc completes a message before it starts the
//! next. In this module `flits[i]` is the length of P_i's message, and messages have the numbers of
//! their sources. PEs keep flits that they cannot forward yet.
//!
//! The walk around the tree, on which neighbours in the ring are at most three edges apart, is by
//! Sekanina; the emulation is paper 004's algorithm A4 without its stops. All else is new.

use flitcast_proto::items::{Packing, ScheduledHop};
use flitcast_proto::{PeId, Tree};

use super::arcs::Arcs;
use super::farthest_first::plan_scatter_by_branch;
use super::timetable::Timetable;

pub use super::gossip_one_port::{Order, one_port};

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
        queue.retain(|come| flits[come.source.index()] > 0);
        // The sort is stable: messages that arrive in the same step stay in the order of their
        // neighbours.
        queue.sort_by_key(|come| come.step);
        let mut free = 1;
        for next in &mut queue {
            next.step = free.max(next.step + 1);
            free = next.step + flits[next.source.index()];
        }
        begins[arc] = queue;
    }
    let hops = (0..arcs.len()).flat_map(|arc| {
        let begins = begins[arc].iter();
        let [from, to] = arcs.ends(arc);
        begins.map(move |begin| ScheduledHop {
            message: begin.source.into(),
            offset: 0,
            flits: flits[begin.source.index()],
            from,
            to,
            first_step: begin.step,
            every: 1,
            packing: Packing::Flits,
        })
    });
    Timetable::of(hops.collect())
}

/// Plans one flit from each PE around the tree: the walk along all edges, children in order, is a
/// ring of the PEs on which each flit moves an arc in every step and meets no other. It takes `2n -
/// 3` steps on every tree if PEs have a port for each neighbour. A flit that passes a PE twice is
/// forwarded in the step after each arrival.
pub fn ring_emulation(tree: &Tree) -> Timetable {
    let walk = walk(tree);
    let steps = walk.len();
    // The position of each PE in the ring: its first position on the walk at even depths, its last
    // at odd depths.
    let mut places: Vec<Option<usize>> = vec![None; tree.len()];
    for (at, pe) in walk.iter().enumerate() {
        let place = &mut places[pe.index()];
        if place.is_none() || tree.depth(*pe) % 2 == 1 {
            *place = Some(at);
        }
    }
    let mut places: Vec<usize> = places.into_iter().flatten().collect();
    places.sort_unstable();
    // Each flit ends at the PE before its source in the ring.
    let ends = places.iter().cycle().skip(places.len() - 1);
    let ways = places.iter().zip(ends);
    let ways: Vec<(usize, usize)> = ways
        .map(|(place, end)| (*place, (end + steps - place) % steps))
        .collect();
    let mut hops = Vec::new();
    for hop in 0..steps {
        for (place, _) in ways.iter().filter(|(_, hops)| hop < *hops) {
            let [source, from, to] = [0, hop, hop + 1].map(|hop| walk[(place + hop) % steps]);
            hops.push(ScheduledHop {
                message: source.into(),
                offset: 0,
                flits: 1,
                from,
                to,
                first_step: hop as u64 + 1,
                every: 1,
                packing: Packing::Flits,
            });
        }
    }
    Timetable::of(hops)
}

/// Returns the PEs on a walk along every edge there and back, without its return to the root.
fn walk(tree: &Tree) -> Vec<PeId> {
    let mut walk = Vec::with_capacity(2 * tree.len());
    let mut next_child = vec![0; tree.len()];
    let mut pe = tree.root();
    loop {
        walk.push(pe);
        let next = &mut next_child[pe.index()];
        pe = match tree.children(pe).get(*next) {
            Some(child) => {
                *next += 1;
                *child
            }
            None => match tree.parent(pe) {
                Some(parent) => parent,
                None => break,
            },
        };
    }
    if walk.len() > 1 {
        walk.pop();
    }
    walk
}

#[cfg(test)]
mod tests;
