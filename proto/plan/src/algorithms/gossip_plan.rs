//! Gossip over the edges of a tree: the message of each PE goes to all other PEs.
//!
//! Each flit crosses each edge once, away from its source. A PE queues messages for each neighbour,
//! its own first, then in the order of arrival; an arc completes a message before it starts the
//! next. In this module `flits[i]` is the length of P_i's message, and messages have the numbers of
//! their sources. PEs keep flits that they cannot forward yet.
//! All of this is new; the paper's algorithms are in [`super::ring_emulation`] and
//! [`super::gossip_in_cycles`].

use flitcast_proto::{PeId, Tree};

use super::arcs::Arcs;
use super::farthest_first::plan_scatter_by_branch;
use super::timetable::{Timetable, hop};

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

#[cfg(test)]
mod tests;
