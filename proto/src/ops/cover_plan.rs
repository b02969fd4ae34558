//! Scatters, gathers and broadcasts over many trees at once that share no arc
//! ([`Cover`]; paper 000, section IV), by PEs that have a port for each neighbour.
//!
//! The ports of P0 belong to one tree each, and a tree may have several of them. What a scatter sends
//! over each of them goes farthest destination first, so that it never waits and no two trees meet.
//! A message that is cut has its flits on the first tree first.

use std::collections::BTreeSet;

use super::plan::{MessagePlan, legs_of, plan_scatter_by_branch};
use super::timetable::Timetable;
use crate::items::Leg;
use crate::network::cover::Cover;
use crate::{MessageId, PeId, Tree};

pub use super::cover_deal::{Deal, deal};

/// Steps that no scatter from P0 takes less than over a network in which it has so many neighbours:
/// what is for PEs at a distance or beyond shares its ports.
pub fn least_steps_of_scatter(ports: usize, distances: &[u64], flits: &[u64]) -> u64 {
    let beyond = flits_beyond(distances, flits).into_iter();
    let steps = beyond.map(|(distance, flits)| flits.div_ceil(ports as u64) + distance - 1);
    steps.max().unwrap_or(0)
}

/// The same for a gather in which a PE sends after word from P0 has reached it.
pub fn least_steps_of_gather(ports: usize, distances: &[u64], flits: &[u64]) -> u64 {
    let beyond = flits_beyond(distances, flits).into_iter();
    let steps = beyond.map(|(distance, flits)| flits.div_ceil(ports as u64) + 2 * distance - 1);
    steps.max().unwrap_or(0)
}

/// For each distance of a nonnull message: the flits at that distance or beyond.
fn flits_beyond(distances: &[u64], flits: &[u64]) -> Vec<(u64, u64)> {
    let mut nonnull: Vec<(u64, u64)> = distances
        .iter()
        .copied()
        .zip(flits.iter().copied())
        .collect();
    nonnull.retain(|(_, flits)| *flits > 0);
    nonnull.sort_unstable();
    let mut beyond = 0;
    for (_, flits) in nonnull.iter_mut().rev() {
        beyond += *flits;
        *flits = beyond;
    }
    nonnull
}

/// Steps that no broadcast takes less than, by the number of ways to each PE that share no arc.
pub fn least_steps_of_broadcast(distances: &[u64], ways: &[usize], flits: u64) -> u64 {
    let others = distances.iter().zip(ways).filter(|(_, ways)| **ways > 0);
    let steps = others.map(|(distance, ways)| flits.div_ceil(*ways as u64) + distance - 1);
    steps.max().filter(|_| flits > 0).unwrap_or(0)
}

/// A scatter of what is dealt to each tree, farthest destination first on each port.
pub fn scatter(cover: &Cover, dealt: &[Vec<u64>]) -> Timetable {
    let plans = cover.trees.iter().zip(dealt).map(|(tree, flits)| {
        let plans = plan_scatter_by_branch(tree, flits);
        plans
            .into_iter()
            .flat_map(move |plan| legs_of(tree, &plan).collect::<Vec<_>>())
    });
    finish(cover, dealt, plans.map(Iterator::collect).collect())
}

/// A gather: tokens of all trees, certificates, orders, each in as many steps as the deepest tree has
/// levels, and then what is dealt to each tree. A PE sends its own message first, then its children's
/// streams by increasing lag, without a gap.
pub fn gather(cover: &Cover, dealt: &[Vec<u64>]) -> Timetable {
    let depths = cover
        .trees
        .iter()
        .flat_map(|tree| tree.pes().map(|pe| tree.depth(pe)));
    let ready = 3 * u64::from(depths.max().unwrap_or(0));
    let trees = cover.trees.iter().zip(dealt);
    let legs = trees.map(|(tree, flits)| {
        let (plans, _) = streams(tree, flits, ready, 1);
        let all = plans
            .iter()
            .flat_map(|plan| up(tree, plan).collect::<Vec<_>>());
        all.collect()
    });
    finish(cover, dealt, legs.collect())
}

/// The steps of a gather on one tree by PEs that have a port for each neighbour, P0 among them: the
/// token goes to all children at once, certificates come the same way back, and all orders of a PE go
/// in one step. P0 takes each child's stream on a port of its own; below it they come one after the
/// other, since the way up is one arc.
pub fn steps_of_gather_on_a_tree(tree: &Tree, flits: &[u64]) -> u64 {
    let height = tree.pes().map(|pe| u64::from(tree.depth(pe))).max();
    // P0 orders one step behind the last certificate, and each level one behind the one above it.
    let ready = 2 * height.unwrap_or(0) + 1;
    let (plans, _) = streams(tree, flits, ready, 2);
    let arrivals = plans.iter().map(|plan| plan.arrival_step);
    arrivals.max().unwrap_or(0)
}

/// When each message leaves its PE, on the way up, if what P0 asks for begins in the step behind
/// `ready`; and each PE's lag. A PE can begin its stream so many steps behind a child's whose stream
/// is the first in it.
fn streams(tree: &Tree, flits: &[u64], ready: u64, behind: u64) -> (Vec<MessagePlan>, Vec<u64>) {
    let below = tree.subtree_sums(|pe| flits[pe.index()]);
    let mut lags = vec![1u64; tree.len()];
    let in_order = |pe: PeId, lags: &[u64]| {
        let children = tree.children(pe).iter().copied();
        let mut children: Vec<PeId> = children.filter(|pe| below[pe.index()] > 0).collect();
        children.sort_by_key(|pe| lags[pe.index()]);
        children
    };
    for &pe in tree.top_down().iter().rev() {
        let mut offset = flits[pe.index()];
        let mut lag = 1;
        for child in in_order(pe, &lags) {
            lag = lag.max((lags[child.index()] + behind).saturating_sub(offset));
            offset += below[child.index()];
        }
        lags[pe.index()] = lag;
    }
    // The step in which the first flit of each PE's stream crosses to its parent.
    let mut begins = vec![0; tree.len()];
    let mut plans = Vec::new();
    for &pe in tree.top_down() {
        let own = flits[pe.index()];
        let mut next = begins[pe.index()] + own;
        if own > 0 {
            plans.push(MessagePlan {
                pe,
                flits: own,
                first_step: begins[pe.index()],
                arrival_step: next - 1 + u64::from(tree.depth(pe)) - 1,
            });
        }
        for child in in_order(pe, &lags) {
            begins[child.index()] = match pe {
                PeId::ROOT => ready + lags[child.index()],
                _ => next - 1,
            };
            next += below[child.index()];
        }
    }
    (plans, lags)
}

/// The crossings of a message on its way up without a stop.
fn up(tree: &Tree, plan: &MessagePlan) -> impl Iterator<Item = Leg> {
    let way = std::iter::successors(Some(plan.pe), |pe| tree.parent(*pe));
    let plan = *plan;
    way.zip(plan.first_step..)
        .filter_map(move |(from, first_step)| {
            Some(Leg {
                message: plan.pe.into(),
                offset: 0,
                flits: plan.flits,
                from,
                to: tree.parent(from)?,
                first_step,
                every: 1,
            })
        })
}

/// Flit x down tree `x mod k`, each as soon as it can.
pub fn broadcast(cover: &Cover, flits: u64) -> Timetable {
    let count = cover.trees.len() as u64;
    let trees = (0..count).zip(&cover.trees);
    let legs = trees.flat_map(|(at, tree)| {
        let turns = (0..).take_while(move |turn| at + turn * count < flits);
        turns.flat_map(move |turn| {
            let edges = tree.pes().filter_map(|to| Some((tree.parent(to)?, to)));
            edges.map(move |(from, to)| Leg {
                message: MessageId(0),
                offset: at + turn * count,
                flits: 1,
                from,
                to,
                first_step: turn + u64::from(tree.depth(to)),
                every: 1,
            })
        })
    });
    let legs: Vec<Leg> = legs.collect();
    let kept = most_passing(&legs);
    Timetable::of(legs, kept)
}

/// The legs of all trees, each piece behind those of the trees before.
fn finish(cover: &Cover, dealt: &[Vec<u64>], legs: Vec<Vec<Leg>>) -> Timetable {
    let mut offsets = vec![0; cover.nodes.len()];
    let mut all = Vec::new();
    for (legs, flits) in legs.into_iter().zip(dealt) {
        all.extend(legs.into_iter().map(|leg| Leg {
            offset: offsets[leg.message.index()],
            ..leg
        }));
        for (offset, flits) in offsets.iter_mut().zip(flits) {
            *offset += flits;
        }
    }
    let kept = most_passing(&all);
    Timetable::of(all, kept)
}

/// The most flits that a PE has at the end of a step which go on in the next.
fn most_passing(legs: &[Leg]) -> u64 {
    let leaving = legs.iter().map(|leg| (leg.from, leg.message, leg.offset));
    let leaving: BTreeSet<(PeId, MessageId, u64)> = leaving.collect();
    let passing = legs
        .iter()
        .filter(|leg| leaving.contains(&(leg.to, leg.message, leg.offset)));
    let changes = passing.flat_map(|leg| {
        let end = leg.first_step + leg.flits;
        [(leg.to, leg.first_step, 1), (leg.to, end, -1)]
    });
    let mut changes: Vec<(PeId, u64, i64)> = changes.collect();
    changes.sort_unstable();
    let counts = changes.iter().scan(0, |here, (_, _, change)| {
        *here += change;
        Some(*here)
    });
    counts.max().unwrap_or(0) as u64
}

#[cfg(test)]
mod tests;
