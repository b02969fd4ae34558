//! Broadcast over a circulant graph in a complete network of any number of PEs (Träff,
//! arXiv:2407.18004): `blocks - 1 + ceil(log2 PEs)` steps, the fewest possible.
//!
//! In a step all PEs send to the PE as many ranks ahead as the step's skip is long; a rank is the place
//! of a PE counted from the source. Each rank repeats its own order of block numbers every q steps, q
//! of which are a phase: one block is new in each phase, the others follow one phase later. Blocks whose
//! numbers are equal modulo q go down one tree, as a part of the message. The last block takes the place
//! of the new one in the last phase, as a separate part: the tail.

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::ops::parts::even_flits;
use flitcast_proto::{MessageId, PeId, Tree};

use super::blocks;
use super::broadcast::{MOST_BLOCKS, URGENT, by_one_port};
use super::broadcast_plan::least_steps_among_all;
use super::gossip::neighbours_at;
use super::lock_step::LockStep;
use super::present::Present;
use super::spec::{AlgorithmSpec, Latencies, LinkRequirement, Offer, TreeRequirement, doublings};
use super::timetable::{Timetable, hop};
use crate::timing::Timing;

/// Over a circulant graph of all PEs.
pub(super) const CIRCULANT: AlgorithmSpec = AlgorithmSpec {
    name: "circulant",
    offer: Offer::choice(
        &[("circulant", None)],
        "circulant (in the fewest possible steps)",
    ),
    fits: TreeRequirement::Complete,
    latencies: |tree| Latencies::of_flits(doublings(tree)),
    pays_on: LinkRequirement::Slow,
    gives_orders: true,
    // Ranks that differ by a skip.
    peers: |tree, pe| {
        neighbours_at(tree, pe, |pes| {
            let skips = skips(pes).into_iter();
            skips.flat_map(|skip| [skip, pes - skip]).collect()
        })
    },
    parts: |tree| skips(tree.count()).len(),
    has_tail: true,
    hops,
    plan: LockStep::FlitByFlit(|task| {
        by_one_port(task, |tree, flits| {
            among(tree.len(), tree.root().index(), flits)
        })
    }),
    bound: least_steps_among_all,
    ..URGENT
};

/// Returns the crossings, planned for flits, or, for a long message, for blocks of flits of one part.
/// The last flit is a separate block.
fn hops(tree: &Tree, bytes: &[u64], timing: &Timing) -> Vec<ScheduledHop> {
    let flits = timing.flits_of_longest(bytes);
    let present = Present::of(tree);
    let pes = present.pes.len();
    let phase = skips(pes).len() as u64 - 1;
    if flits == 0 || phase == 0 {
        return Vec::new();
    }
    let block = flits.div_ceil(MOST_BLOCKS);
    let of_parts = even_flits(flits - 1, phase as usize);
    let last: u64 = of_parts.iter().map(|flits| flits.div_ceil(block)).sum();
    let mut plan = among(pes, present.tree.root().index(), last + 1);
    for hop in &mut plan.hops {
        (hop.message, hop.offset) = match hop.offset == last {
            true => (MessageId(0), 0),
            false => (MessageId(hop.offset % phase + 1), hop.offset / phase),
        };
    }
    let flits_of = |part: MessageId| part.index().checked_sub(1).map_or(1, |part| of_parts[part]);
    let hops = blocks::in_flits(plan.hops, block, flits_of);
    let mut hops = present.renumbered(hops, timing, |part| part);
    hops.sort_by_key(|hop| (hop.first_step, hop.from, hop.to));
    hops
}

/// Plans a broadcast of blocks from the PE at this place among `pes` PEs.
fn among(pes: usize, root: usize, blocks: u64) -> Timetable {
    let skips = skips(pes);
    let phase = skips.len() as u64 - 1;
    let (Some(last), true) = (blocks.checked_sub(1), phase > 0) else {
        return Timetable::default();
    };
    // The first phase begins in its middle, so that the last one ends with its last step.
    let left_out = (phase - (last + phase) % phase) % phase;
    let received: Vec<Vec<i64>> = (1..pes).map(|rank| received(rank, &skips)).collect();
    let at = |rank: usize| PeId(((rank + root) % pes) as u32);
    let mut hops = Vec::new();
    for step in 1..=last + phase {
        let place = step - 1 + left_out;
        let (slot, begun) = (
            (place % phase) as usize,
            (place / phase * phase) as i64 - left_out as i64,
        );
        for (rank, received) in (1..).zip(&received) {
            // Negative: the sender has no block of the phase before.
            let Ok(block) = u64::try_from(received[slot] + begun) else {
                continue;
            };
            let ends = [at(rank + pes - skips[slot]), at(rank)];
            hops.push(hop(MessageId(0), ends, [block.min(last), 1], step));
        }
    }
    Timetable::of(hops)
}

/// Returns the distances in ranks between senders and receivers, for each step of a phase, and the number
/// of PEs: each is half of the next one, rounded up.
fn skips(pes: usize) -> Vec<usize> {
    let half = |skip: &usize| (*skip > 1).then(|| skip.div_ceil(2));
    let mut skips: Vec<usize> = std::iter::successors(Some(pes), half).collect();
    skips.reverse();
    skips
}

/// Returns the block that a rank receives in each step of the first phase; a negative number is one of
/// the phase before.
fn received(rank: usize, skips: &[usize]) -> Vec<i64> {
    let phase = skips.len() - 1;
    let base = base_block(rank, skips);
    let mut search = Search {
        rank,
        skips,
        unused: (0..=phase).rev().filter(|block| *block != base).collect(),
        limit: 2 * skips[phase],
        found: Vec::new(),
    };
    search.walk(0, phase);
    let numbers = search.found.into_iter().map(|block| match block == phase {
        true => base as i64,
        false => block as i64 - phase as i64,
    });
    numbers.collect()
}

/// Returns the block that is new at a rank in each phase: the least of the skips whose sum is the rank.
fn base_block(rank: usize, skips: &[usize]) -> usize {
    let mut left = rank;
    for (block, skip) in skips.iter().enumerate().rev() {
        if *skip == left {
            return block;
        }
        if *skip < left {
            left -= skip;
        }
    }
    skips.len() - 1
}

/// A depth-first search of the blocks that a rank receives, over sums of different skips (section 2).
struct Search<'a> {
    rank: usize,
    skips: &'a [usize],
    /// Blocks that are not assigned to a step, the greatest first.
    unused: Vec<usize>,
    limit: usize,
    /// The block of each step so far.
    found: Vec<usize>,
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.found.len() + 1 == self.skips.len()
    }

    /// Returns the rank, counted around once, less the skip of a step.
    fn bound(&self, step: usize) -> usize {
        self.skips[self.skips.len() - 1] + self.rank - self.skips[step]
    }

    /// Assigns blocks up to `from` to steps, at a sum of skips.
    fn walk(&mut self, at: usize, from: usize) {
        let mut next = Some(from);
        while let Some(block) = self.unused_from(next) {
            let there = at + self.skips[block];
            if there <= self.bound(self.found.len()) && there < self.limit {
                if there <= self.bound(self.found.len() + 1) {
                    self.walk(there, block);
                }
                if self.is_over() || at > self.bound(self.found.len() + 1) {
                    return;
                }
                self.found.push(block);
                self.limit = there;
                self.unused.retain(|unused| *unused != block);
                if self.is_over() {
                    return;
                }
            }
            next = block.checked_sub(1);
        }
    }

    /// Returns the greatest unused block up to this one.
    fn unused_from(&self, from: Option<usize>) -> Option<usize> {
        let from = from?;
        self.unused.iter().copied().find(|block| *block <= from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::check_single_ports;

    /// The tables of the papers.
    #[test]
    fn ranks_receive_the_blocks_of_the_papers() {
        let rows = |pes| (0..pes).map(move |rank| received(rank, &skips(pes)));
        assert_eq!(skips(9), [1, 2, 3, 5, 9]);
        let of_nine = [
            [-2, -3, -1, -4],
            [0, -2, -3, -1],
            [-4, 1, -2, -1],
            [-3, -4, 2, -1],
            [-2, -3, 0, -1],
            [-4, -2, -3, 3],
            [-1, -2, -3, 0],
            [-4, -1, -2, 1],
            [-3, -4, -1, 2],
        ];
        assert!(rows(9).eq(of_nine));
        assert_eq!(skips(7), [1, 2, 4, 7]);
        let of_seven = [
            [-2, -1, -3],
            [0, -2, -1],
            [-3, 1, -1],
            [-2, 0, -1],
            [-3, -2, 2],
            [-1, -2, 0],
            [-3, -1, 1],
        ];
        assert!(rows(7).eq(of_seven));
    }

    /// Each PE receives each block once, from one that has it, with one port for each direction, in the
    /// fewest possible steps.
    #[test]
    fn a_replay_takes_the_fewest_possible_steps() {
        let few = (1..=130).flat_map(|pes| (1..=40).map(move |blocks| (pes, blocks)));
        let many = [(200, 64), (513, 9), (1025, 17)];
        for (pes, blocks) in few.chain(many) {
            let root = pes / 3;
            let plan = among(pes, root, blocks);
            let source = |_| PeId(root as u32);
            let all = check_single_ports(&plan.hops, source);
            let mut arrivals: Vec<_> = all.iter().map(|(_, _, to, flit)| (*to, *flit)).collect();
            arrivals.sort_unstable();
            arrivals.dedup();
            assert_eq!(
                arrivals.len() as u64,
                (pes as u64 - 1) * blocks,
                "{pes} {blocks}"
            );
            assert_eq!(all.len(), arrivals.len(), "{pes} {blocks}");
            let least = super::super::broadcast_plan::least_steps_of_complete(pes, blocks);
            assert_eq!(plan.time_steps, least, "{pes} {blocks}");
        }
    }
}
