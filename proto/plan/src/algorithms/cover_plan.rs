//! Scatters, gathers and broadcasts over several trees ([`Cover`]; paper 000, section IV), by PEs that
//! have a port for each neighbour.
//!
//! Each port of P0 belongs to one tree, and a tree may have several of them. The trees share no arc, or,
//! in a scatter by the second technique, some arcs; the paper only says that the traffic there has to be
//! scheduled. The streams over a shared arc follow each other, and a stream starts so late that it never
//! stops: a PE forwards every flit in the step after its arrival. The flits of a split message are
//! numbered by tree. The distribution of messages over the trees is a new method; delays arise only at
//! ports.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use flitcast_proto::items::{Control, ScheduledHop};
use flitcast_proto::schedule::certification::Certificate;
use flitcast_proto::schedule::pace::Packets;
use flitcast_proto::{MessageId, PeId, Tree};

use super::farthest_first::{branches, hops_of};
use super::lock_step::{ControlPlan, MessagePlan, on_its_way};
use super::timetable::{Timetable, hop};
use crate::network::cover::Cover;

/// Returns a lower bound on the steps of a scatter from P0 with `ports` neighbours: all flits for
/// PEs at a distance or beyond share these ports.
pub fn least_steps_of_scatter(ports: usize, distances: &[u64], flits: &[u64]) -> u64 {
    let mut nonnull: Vec<(&u64, &u64)> = distances.iter().zip(flits).collect();
    nonnull.retain(|(_, flits)| **flits > 0);
    nonnull.sort_unstable();
    let mut beyond = 0;
    let steps = nonnull.into_iter().rev().map(|(distance, flits)| {
        beyond += flits;
        beyond.div_ceil(ports as u64) + distance - 1
    });
    steps.max().unwrap_or(0)
}

/// Returns a lower bound on the steps of a gather in which a PE sends after an order from P0 has
/// reached it, as late as its first flit would.
pub fn least_steps_of_gather(ports: usize, distances: &[u64], flits: &[u64]) -> u64 {
    let there_and_back: Vec<u64> = distances.iter().map(|distance| 2 * distance).collect();
    least_steps_of_scatter(ports, &there_and_back, flits)
}

/// Returns a lower bound on the steps of a broadcast from the number of arc-disjoint paths to each
/// PE.
pub fn least_steps_of_broadcast(distances: &[u64], ways: &[usize], flits: u64) -> u64 {
    let others = distances.iter().zip(ways).filter(|(_, ways)| **ways > 0);
    let steps = others.map(|(distance, ways)| flits.div_ceil(*ways as u64) + distance - 1);
    steps.max().filter(|_| flits > 0).unwrap_or(0)
}

/// The steps in which each arc is busy: for each first step of a stream, the step after its last.
type Busy = BTreeMap<[PeId; 2], BTreeMap<u64, u64>>;

/// Plans a scatter of the distributed messages. Streams are scheduled farthest destination first, each
/// from the first step from which on it finds all arcs on its way free. On trees that share no arc, each
/// port of P0 so sends without a gap.
pub fn scatter(cover: &Cover, dealt: &[Vec<u64>]) -> Timetable {
    let trees = cover.trees.iter().zip(dealt).enumerate();
    let streams = trees.flat_map(|(at, (tree, flits))| {
        let nonnull = tree.below_root().filter(|pe| flits[pe.index()] > 0);
        nonnull.map(move |pe| (Reverse(tree.depth(pe)), pe, at))
    });
    let mut streams: Vec<(Reverse<u32>, PeId, usize)> = streams.collect();
    streams.sort_unstable();
    let mut busy = Busy::new();
    let mut hops = vec![Vec::new(); cover.trees.len()];
    for (_, pe, at) in streams {
        let (tree, flits) = (&cover.trees[at], dealt[at][pe.index()]);
        let way = tree.way_to(pe);
        let way: Vec<[PeId; 2]> = way.windows(2).map(|arc| [arc[0], arc[1]]).collect();
        let first_step = first_free(&busy, &way, flits);
        for (arc, step) in way.into_iter().zip(first_step..) {
            busy.entry(arc).or_default().insert(step, step + flits);
        }
        let plan = on_its_way(tree, pe, flits, first_step);
        hops[at].extend(hops_of(tree, &plan));
    }
    finish(cover, dealt, hops)
}

/// Returns the first step from which on a stream of `flits` flits meets no other on its way.
fn first_free(busy: &Busy, way: &[[PeId; 2]], flits: u64) -> u64 {
    let mut start = 1;
    loop {
        let ends = (0..).zip(way).filter_map(|(hop, arc)| {
            // The last of the streams that begin before the end of this one also ends last.
            let [first, end] = [start + hop, start + hop + flits];
            let (_, until) = busy.get(arc)?.range(..end).next_back()?;
            (*until > first).then_some(until - hop)
        });
        match ends.max() {
            Some(later) => start = later,
            None => return start,
        }
    }
}

/// Plans a gather: tokens of all trees, certificates and orders, each for as many steps as the
/// deepest tree has levels, then the messages on each tree. A PE sends its own message first, then
/// its children's streams by increasing lag, without a gap.
pub fn gather(cover: &Cover, dealt: &[Vec<u64>]) -> Timetable {
    let ready = 3 * levels(cover);
    let trees = cover.trees.iter().zip(dealt);
    let hops = trees.map(|(tree, flits)| {
        let Streams { messages, .. } = streams(tree, flits, ready, 1);
        messages.iter().flat_map(|plan| up(tree, plan)).collect()
    });
    finish(cover, dealt, hops.collect())
}

/// Returns the levels of the deepest tree.
fn levels(cover: &Cover) -> u64 {
    let heights = cover.trees.iter().map(Tree::height);
    heights.max().unwrap_or(0).into()
}

/// Returns the control items of [`gather`] by step, each with the index of its tree. An edge carries
/// tokens in the first steps, one for each level, then certificates, then orders, then messages.
pub fn control_of_gather(cover: &Cover, dealt: &[Vec<u64>]) -> Vec<(usize, ControlPlan)> {
    let levels = levels(cover);
    let mut control = Vec::new();
    for (index, (tree, flits)) in cover.trees.iter().zip(dealt).enumerate() {
        let Streams { lags, begins, .. } = streams(tree, flits, 3 * levels, 1);
        let below = tree.subtree_sums(|pe| flits[pe.index()]);
        for [parent, pe] in tree.edges() {
            let depth = u64::from(tree.depth(pe));
            let ordered = 2 * levels + depth;
            let stream = below[pe.index()];
            let certificate = Control::Certificate(Certificate {
                lag: 3 * levels + lags[pe.index()] - ordered,
                stream,
                packets: Packets::of(stream, 1),
            });
            let order = || Control::Order {
                after: begins[pe.index()] - ordered,
            };
            let items = [
                Some((depth, [parent, pe], Control::Token)),
                Some((2 * levels + 1 - depth, [pe, parent], certificate)),
                (stream > 0).then(|| (ordered, [parent, pe], order())),
            ];
            let items = items.into_iter().flatten();
            control.extend(
                items.map(|(step, ends, item)| (index, ControlPlan::new(step, ends, item))),
            );
        }
    }
    control.sort_unstable_by_key(|(tree, item)| (item.step, item.from, item.to, *tree));
    control
}

/// Returns the steps of a gather on one tree if all PEs have a port for each neighbour. The token
/// goes to all children at once, certificates return the same way, and all orders of a PE go in one
/// step. P0 receives each child's stream on its own port; at other PEs the streams follow each
/// other, because there is only one arc to the parent.
pub fn steps_of_gather_on_a_tree(tree: &Tree, flits: &[u64]) -> u64 {
    // P0 orders one step after the last certificate, and each level one step after the one above
    // it.
    let ready = 2 * u64::from(tree.height()) + 1;
    let Streams { messages, .. } = streams(tree, flits, ready, 2);
    let arrivals = messages.iter().map(|plan| plan.arrival_step);
    arrivals.max().unwrap_or(0)
}

/// The streams of a gather on one tree.
struct Streams {
    /// The steps of each message on its way up.
    messages: Vec<MessagePlan>,
    /// The lag of each PE.
    lags: Vec<u64>,
    /// The step in which the first flit of each PE's stream crosses to its parent.
    begins: Vec<u64>,
}

/// Returns the streams if that of a child of P0 begins its lag after `ready`. A PE can begin its
/// stream `behind` steps after a child whose stream is the first in it.
fn streams(tree: &Tree, flits: &[u64], ready: u64, behind: u64) -> Streams {
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
    let mut begins = vec![0; tree.len()];
    let mut messages = Vec::new();
    for &pe in tree.top_down() {
        let own = flits[pe.index()];
        let mut next = begins[pe.index()] + own;
        if own > 0 {
            messages.push(on_its_way(tree, pe, own, begins[pe.index()]));
        }
        for child in in_order(pe, &lags) {
            begins[child.index()] = match pe {
                PeId::ROOT => ready + lags[child.index()],
                _ => next - 1,
            };
            next += below[child.index()];
        }
    }
    Streams {
        messages,
        lags,
        begins,
    }
}

/// Returns the crossings of a message on its way up without a stop.
fn up(tree: &Tree, plan: &MessagePlan) -> impl Iterator<Item = ScheduledHop> {
    let plan = *plan;
    tree.up_from(plan.pe)
        .zip(plan.first_step..)
        .filter_map(move |(from, first_step)| {
            let ends = [from, tree.parent(from)?];
            Some(hop(plan.pe.into(), ends, [0, plan.flits], first_step))
        })
}

/// Plans a broadcast: flit x goes down tree `x mod k`, each as soon as possible.
pub fn broadcast(cover: &Cover, flits: u64) -> Timetable {
    let count = cover.trees.len() as u64;
    let trees = (0..count).zip(&cover.trees);
    let hops = trees.flat_map(|(at, tree)| {
        let turns = (0..).take_while(move |turn| at + turn * count < flits);
        turns.flat_map(move |turn| {
            tree.edges().map(move |ends| {
                let first_step = turn + u64::from(tree.depth(ends[1]));
                hop(MessageId(0), ends, [at + turn * count, 1], first_step)
            })
        })
    });
    Timetable::of(hops.collect())
}

/// Combines the crossings of all trees; each part of a message follows those on earlier trees.
fn finish(cover: &Cover, dealt: &[Vec<u64>], hops: Vec<Vec<ScheduledHop>>) -> Timetable {
    let mut offsets = vec![0; cover.nodes.len()];
    let mut all = Vec::new();
    for (hops, flits) in hops.into_iter().zip(dealt) {
        all.extend(hops.into_iter().map(|hop| ScheduledHop {
            offset: offsets[hop.message.index()],
            ..hop
        }));
        for (offset, flits) in offsets.iter_mut().zip(flits) {
            *offset += flits;
        }
    }
    Timetable::of(all)
}

/// A distribution of messages over trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitPolicy {
    /// Whole messages, longest first, each on the tree where it arrives first.
    Whole,
    /// An equal number of flits of each message on each tree.
    Striped,
    /// Single flits, each on the tree where it arrives first.
    Levelled,
}

impl SplitPolicy {
    /// All distributions; those that split the fewest messages first.
    pub const ALL: [SplitPolicy; 3] = [
        SplitPolicy::Whole,
        SplitPolicy::Striped,
        SplitPolicy::Levelled,
    ];
}

impl fmt::Display for SplitPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SplitPolicy::Whole => "whole",
            SplitPolicy::Striped => "striped",
            SplitPolicy::Levelled => "levelled",
        })
    }
}

/// Returns for each tree and PE the flits of the PE's message on that tree. `flits[0]` is 0.
pub fn deal(cover: &Cover, flits: &[u64], how: SplitPolicy) -> Vec<Vec<u64>> {
    match how {
        SplitPolicy::Whole => whole(cover, flits),
        SplitPolicy::Striped => striped(cover, flits),
        SplitPolicy::Levelled => levelled(cover, flits),
    }
}

/// Returns the PEs with a message, longest message first.
fn by_length(flits: &[u64]) -> Vec<PeId> {
    let all = (0..flits.len() as u32).map(PeId);
    let mut nonnull: Vec<PeId> = all.filter(|pe| flits[pe.index()] > 0).collect();
    nonnull.sort_by_key(|pe| Reverse(flits[pe.index()]));
    nonnull
}

fn whole(cover: &Cover, flits: &[u64]) -> Vec<Vec<u64>> {
    let branches: Vec<Vec<PeId>> = cover.trees.iter().map(branches).collect();
    let mut dealt = vec![vec![0; flits.len()]; cover.trees.len()];
    // For each tree and port, the flits for each depth.
    let mut ports: Vec<Vec<Vec<u64>>> = vec![vec![Vec::new(); flits.len()]; cover.trees.len()];
    for pe in by_length(flits) {
        let length = flits[pe.index()];
        let trees = cover.trees.iter().enumerate().map(|(at, tree)| {
            let depth = tree.depth(pe) as usize;
            let port = &ports[at][branches[at][pe.index()].index()];
            (last_step(port, depth, length), depth, at)
        });
        let Some((_, depth, at)) = trees.min() else {
            continue;
        };
        dealt[at][pe.index()] = length;
        let port = &mut ports[at][branches[at][pe.index()].index()];
        port.resize(port.len().max(depth + 1), 0);
        port[depth] += length;
    }
    dealt
}

/// Returns the step of the last arrival if a port sends farthest destination first, with one
/// message of `flits` flits to depth `depth` added.
fn last_step(by_depth: &[u64], depth: usize, flits: u64) -> u64 {
    let deepest = by_depth.len().max(depth + 1);
    let (mut sent, mut last) = (0, 0);
    for at in (1..deepest).rev() {
        let here = by_depth.get(at).copied().unwrap_or(0) + if at == depth { flits } else { 0 };
        sent += here;
        if here > 0 {
            last = last.max(sent + at as u64 - 1);
        }
    }
    last
}

/// Flits that remain after an even split go to the trees in turn, starting at the tree with the
/// number of the PE's node.
fn striped(cover: &Cover, flits: &[u64]) -> Vec<Vec<u64>> {
    let trees = cover.trees.len() as u64;
    let on_tree = |tree: u64| {
        let piece = |(node, length): (&u32, &u64)| {
            let turn = (tree + trees - u64::from(*node) % trees) % trees;
            length / trees + u64::from(turn < length % trees)
        };
        cover.nodes.iter().zip(flits).map(piece).collect()
    };
    (0..trees).map(on_tree).collect()
}

/// Assigns each flit to the tree on which it can arrive first: after all flits of its port, and not
/// before the distance to the PE. Each assigned flit delays the next one by a step, so flits fill
/// the trees up to a common level.
fn levelled(cover: &Cover, flits: &[u64]) -> Vec<Vec<u64>> {
    let branches: Vec<Vec<PeId>> = cover.trees.iter().map(branches).collect();
    let mut dealt = vec![vec![0; flits.len()]; cover.trees.len()];
    let mut on_port = dealt.clone();
    for pe in by_length(flits) {
        let trees = cover.trees.iter().enumerate().map(|(at, tree)| {
            let depth = u64::from(tree.depth(pe));
            let port = on_port[at][branches[at][pe.index()].index()];
            (depth.max(port + 1), depth, at)
        });
        let mut trees: Vec<(u64, u64, usize)> = trees.collect();
        trees.sort_unstable();
        let mut left = flits[pe.index()];
        // The number of trees that are filled, and the step up to which they are.
        let (mut filled, mut level) = (1, trees[0].0);
        while let Some((next, ..)) = trees.get(filled) {
            let room = (next - level) * filled as u64;
            if room > left {
                break;
            }
            left -= room;
            level = *next;
            filled += 1;
        }
        let (full, rest) = (left / filled as u64, left % filled as u64);
        let mut filled = trees[..filled].to_vec();
        filled.sort_unstable_by_key(|(_, depth, at)| (*depth, *at));
        for (turn, (first, _, at)) in (0..).zip(filled) {
            let piece = level - first + full + u64::from(turn < rest);
            dealt[at][pe.index()] = piece;
            on_port[at][branches[at][pe.index()].index()] += piece;
        }
    }
    dealt
}

#[cfg(test)]
mod tests;
