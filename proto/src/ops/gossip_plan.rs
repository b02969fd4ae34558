//! Gossip over the edges of a tree: what every PE has goes to all others.
//!
//! Each flit crosses each edge once, away from its source. A PE queues messages, its own first, for
//! each neighbour, first come, first sent; an arc stays with a message that it has begun. In all of
//! this module `flits[i]` is what P_i has for the others, and messages are named after their
//! sources. PEs keep what they cannot pass on yet, so nothing here is bufferless but
//! [`ring_emulation`].
//!
//! The walk around the tree, on which neighbours of the ring are three edges apart at most, is
//! Sekanina's; the emulation is paper 004's algorithm A4, here without its stops. All else is ours.

use super::arcs::Arcs;
use super::plan::plan_scatter_by_branch;
use super::timetable::Timetable;
use crate::items::Leg;
use crate::{PeId, Tree};

pub use super::gossip_one_port::{Order, one_port};

/// Steps that no gossip takes less than where a PE has a port for each neighbour: what a PE gets
/// over one of its edges takes as long as a scatter from there over that edge, backwards in time.
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

/// Steps that no gossip takes less than where a PE sends one flit a step: to each of its neighbours
/// it sends all that does not come from there, and what it ends with at the k-th goes on behind it.
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

/// When the first flit of a message crosses an arc.
#[derive(Clone, Copy, Debug)]
struct Begin {
    source: PeId,
    step: u64,
}

/// With a port for each neighbour: no arc idles while flits wait for it, and no gossip is faster,
/// for any lengths. The flits of a message follow one another over every arc.
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
        // Those that come in one step are from different neighbours, which stand in order.
        queue.sort_by_key(|come| come.step);
        let mut free = 1;
        for next in &mut queue {
            next.step = free.max(next.step + 1);
            free = next.step + flits[next.source.index()];
        }
        begins[arc] = queue;
    }
    let kept = tree.pes().map(|pe| {
        let came = arcs.out_of(pe).map(|arc| begins[into[arc]].as_slice());
        let gone = arcs.out_of(pe).map(|arc| begins[arc].as_slice());
        most_kept(flits, came, gone)
    });
    let kept = kept.max().unwrap_or(0);
    let legs = (0..arcs.len()).flat_map(|arc| {
        let begins = begins[arc].iter();
        let [from, to] = arcs.ends(arc);
        begins.map(move |begin| Leg {
            message: begin.source.into(),
            offset: 0,
            flits: flits[begin.source.index()],
            from,
            to,
            first_step: begin.step,
            every: 1,
        })
    });
    Timetable::of(legs.collect(), kept)
}

/// The most flits that a PE keeps at the end of a step for others, of messages that come over one
/// arc and go on over the others.
fn most_kept<'a>(
    flits: &[u64],
    came: impl Iterator<Item = &'a [Begin]>,
    gone: impl Iterator<Item = &'a [Begin]>,
) -> u64 {
    let mut last_gone = vec![0; flits.len()];
    for begin in gone.flatten() {
        let last = &mut last_gone[begin.source.index()];
        *last = begin.step.max(*last);
    }
    // From these steps on, one flit more or less comes or leaves in each.
    let changes = came.flatten().flat_map(|begin| {
        let length = flits[begin.source.index()];
        let (comes, leaves) = (begin.step, last_gone[begin.source.index()]);
        let stays = [
            (comes, 1),
            (comes + length, -1),
            (leaves, -1),
            (leaves + length, 1),
        ];
        stays.into_iter().filter(move |_| leaves > 0)
    });
    let mut changes: Vec<(u64, i64)> = changes.collect();
    changes.sort_unstable();
    let (mut kept, mut most, mut growth, mut since) = (0i64, 0i64, 0i64, 0u64);
    for (step, change) in changes {
        kept += growth * (step - since) as i64;
        most = most.max(kept);
        growth += change;
        since = step;
    }
    most as u64
}

/// One flit from each PE, around the tree: the walk along all edges, children in order, makes a
/// ring of the PEs, on which each flit moves an arc in every step and meets no other. `2n - 3` steps
/// on every tree, by PEs that have a port for each neighbour and keep nothing.
pub fn ring_emulation(tree: &Tree) -> Timetable {
    let walk = walk(tree);
    let steps = walk.len();
    // Where each PE stands in the ring: where the walk meets it first at even depths, last at odd.
    let mut places: Vec<Option<usize>> = vec![None; tree.len()];
    for (at, pe) in walk.iter().enumerate() {
        let place = &mut places[pe.index()];
        if place.is_none() || tree.depth(*pe) % 2 == 1 {
            *place = Some(at);
        }
    }
    let mut places: Vec<usize> = places.into_iter().flatten().collect();
    places.sort_unstable();
    // Each flit ends where the ring's PE before its source stands.
    let ends = places.iter().cycle().skip(places.len() - 1);
    let ways = places.iter().zip(ends);
    let ways: Vec<(usize, usize)> = ways
        .map(|(place, end)| (*place, (end + steps - place) % steps))
        .collect();
    let (mut legs, mut kept) = (Vec::new(), 0);
    for hop in 0..steps {
        let mut passing = vec![0; tree.len()];
        for (place, hops) in ways.iter().filter(|(_, hops)| hop < *hops) {
            let [source, from, to] = [0, hop, hop + 1].map(|hop| walk[(place + hop) % steps]);
            legs.push(Leg {
                message: source.into(),
                offset: 0,
                flits: 1,
                from,
                to,
                first_step: hop as u64 + 1,
                every: 1,
            });
            if hop + 1 < *hops && to != source {
                passing[to.index()] += 1;
                kept = passing[to.index()].max(kept);
            }
        }
    }
    Timetable::of(legs, kept)
}

/// The PEs as a walk along every edge there and back meets them, without its return to the root.
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
