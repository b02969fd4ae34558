//! Broadcast over the trees of a hypercube in a complete network of 2, 4, 8 and so on PEs. The
//! flits of the message go to the trees in turn, so the message has a part for each tree. One
//! static schedule covers all trees; a PE sends one flit and receives one in each step.

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::ops::parts::even_flits;
use flitcast_proto::{MessageId, PeId, Tree};

use super::blocks;
use super::broadcast::{MOST_BLOCKS, URGENT};
use super::broadcast_plan::least_steps_among_all;
use super::lock_step::LockStep;
use super::spec::{AlgorithmSpec, Latencies, LinkRequirement, Offer, TreeRequirement, doublings};
use super::timetable::{Timetable, hop};
use crate::timing::Timing;

/// Flit k goes down tree `k mod d` (Johnsson, Ho; 1989): `flits + d` steps among `2^d` PEs.
pub(super) const HYPERCUBE: AlgorithmSpec = AlgorithmSpec {
    name: "hypercube",
    offer: Offer {
        network: "hypercube",
        ..Offer::choice(&[("hypercube", None)], "")
    },
    fits: TreeRequirement::Cubes,
    latencies: |tree| Latencies::of_flits(doublings(tree)),
    pays_on: LinkRequirement::Slow,
    gives_orders: true,
    peers: |tree, pe| {
        (0..dimensions(tree))
            .map(|it| PeId(pe.0 ^ (1 << it)))
            .collect()
    },
    parts: |tree| dimensions(tree).max(1) as usize,
    hops,
    plan: LockStep::FlitByFlit(|task| Ok(over_trees(task.tree, task.source, task.flits[0]))),
    bound: least_steps_among_all,
    ..URGENT
};

fn dimensions(tree: &Tree) -> u32 {
    tree.len().ilog2()
}

/// Returns the crossings, planned for flits, or, for a long message, for blocks of flits of one
/// tree.
fn hops(tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<ScheduledHop> {
    let flits = timing.flits_of_longest(bytes);
    let trees = u64::from(dimensions(tree).max(1));
    let block = flits.div_ceil(MOST_BLOCKS).max(1);
    let of_trees = even_flits(flits, trees as usize);
    let blocks = of_trees.iter().map(|flits| flits.div_ceil(block)).sum();
    let mut plan = over_trees(tree, tree.root(), blocks);
    for hop in &mut plan.hops {
        (hop.message, hop.offset) = (MessageId(hop.offset % trees), hop.offset / trees);
    }
    let mut hops = blocks::in_flits(plan.hops, block, |it| of_trees[it.index()]);
    hops.sort_by_key(|hop| (hop.first_step, hop.from, hop.to));
    hops
}

/// Plans a broadcast in a complete network of `2^d` PEs in which flit k goes down tree `k mod d` of a
/// hypercube (Johnsson, Ho; 1989). The arcs of the trees are disjoint; in a step, all PEs use one
/// dimension. It takes `flits + d` steps. XOR renames the PEs for a source that is not P0.
fn over_trees(tree: &Tree, source: PeId, flits: u64) -> Timetable {
    let (d, pes) = (u64::from(dimensions(tree)), tree.len() as u32);
    // Dimension 0 is the highest bit.
    let bit = |dimension: u64| 1u32 << (d - 1 - dimension);
    // The dimension of the arc that leads to a PE in a tree.
    let arc = |tree: u64, pe: u32| {
        if pe & bit(tree) == 0 {
            return tree;
        }
        let earlier = (1..=d).map(|back| (tree + d - back) % d);
        let mut set = earlier.filter(|dimension| pe & bit(*dimension) != 0);
        set.next().unwrap_or(tree)
    };
    let mut plan = Timetable::default();
    // By PE: the steps of each flit's arrival and of its last departure.
    let mut arrivals = vec![vec![0; flits as usize]; pes as usize];
    let mut departures = arrivals.clone();
    for flit in 0..flits {
        let tree = flit % d.max(1);
        for pe in 1..pes {
            let dimension = arc(tree, pe);
            let parent = pe ^ bit(dimension);
            let wait = match (dimension + d - tree) % d {
                0 if parent != 0 => d,
                wait => wait,
            };
            let step = flit + 1 + wait;
            let ends = [parent, pe].map(|pe| PeId(pe ^ source.0));
            plan.hops.push(hop(MessageId(0), ends, [flit, 1], step));
            plan.time_steps = plan.time_steps.max(step);
            arrivals[pe as usize][flit as usize] = step;
            let last = &mut departures[parent as usize][flit as usize];
            *last = step.max(*last);
        }
    }
    let kept = arrivals.iter().zip(&departures).skip(1);
    let most_kept = kept
        .map(|(arrivals, departures)| kept_flits(arrivals, departures))
        .max();
    Timetable {
        kept_flits: Some(most_kept.unwrap_or(0)),
        ..plan
    }
}

/// Returns the maximum number of flits that a PE keeps at the end of a step, each from its arrival
/// to its departure.
fn kept_flits(arrivals: &[u64], departures: &[u64]) -> u64 {
    let stays = arrivals
        .iter()
        .zip(departures)
        .filter(|(arrival, departure)| departure > arrival);
    let ends = stays.flat_map(|(arrival, departure)| [(*departure, -1), (*arrival, 1)]);
    let mut ends: Vec<(u64, i64)> = ends.collect();
    // A flit that departs in a step is not kept at its end.
    ends.sort_unstable();
    let counts = ends.iter().scan(0, |here, (_, change)| {
        *here += change;
        Some(*here)
    });
    counts.max().unwrap_or(0) as u64
}
