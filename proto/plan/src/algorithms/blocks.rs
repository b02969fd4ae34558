//! Static schedules of long messages, planned in blocks of flits, so that the size of a plan, of a
//! PE's schedule and of a prediction grows with the number of messages and not with their lengths.
//!
//! A planner that decides flit by flit plans each block as one flit, and each crossing of the
//! result becomes a crossing of all flits of its blocks, one after the other. PEs still forward
//! each flit as it arrives, so a block causes no delay by itself; only the choice of the next
//! message is made once for all of its flits. A plan is longer by at most a block for each message
//! that passes the busiest port, because the last block of a message may be short.

use flitcast_proto::items::ScheduledHop;
use flitcast_proto::{MessageId, PeId, Tree};

use super::algorithm::Algorithm;
use super::exchange_plan;

/// Number of crossings up to which all are planned flit by flit. A list of that many takes a tenth of
/// a second to plan, and 3 MB of memory in each PE.
const FEW_CROSSINGS: u64 = 1 << 15;
/// Maximum number of crossings of a list. It is reached only if messages would have fewer than
/// [`BLOCKS`] blocks otherwise.
pub const MOST_CROSSINGS: u64 = 1 << 17;
/// Number of blocks of a message below which a plan takes noticeably longer: an exchange of 64 PEs
/// with one block for each message is predicted to take up to a third longer.
const BLOCKS: u64 = 32;

/// Returns the number of flits in a block of a gossip over the edges of a tree. `flits` has the
/// number of flits of each PE's message.
pub fn of_gossip(tree: &Tree, flits: &[u64]) -> u64 {
    let edges = tree.len() as u64 - 1;
    let total = flits.iter().copied().fold(0, u64::saturating_add);
    let messages = flits.iter().filter(|flits| **flits > 0).count() as u64;
    block_flits(total.saturating_mul(edges), messages * edges)
}

/// Returns the number of flits in a block of an exchange over the edges of a tree. `flits` has the
/// number of flits of each message, by source and destination.
pub fn of_exchange(tree: &Tree, flits: &[Vec<u64>]) -> u64 {
    let one_each = |row: &Vec<u64>| row.iter().map(|flits| (*flits).min(1)).collect();
    let ones: Vec<Vec<u64>> = flits.iter().map(one_each).collect();
    let [all, of_ones] = [flits, &ones].map(|flits| exchange_plan::crossings(tree, flits));
    block_flits(all, of_ones)
}

impl Algorithm {
    /// Returns the number of crossings of edges that a static schedule over the edges of a tree has at
    /// least: those of one block of each nonnull message. Returns 0 for an algorithm without such a
    /// schedule. `bytes` is by delivery.
    pub fn least_crossings(self, tree: &Tree, bytes: &[u64]) -> u64 {
        let row = |from: PeId| &bytes[from.index() * tree.len()..][..tree.len()];
        if self == Algorithm::EXCHANGE_TREE {
            let is_sent = |from: PeId, to: PeId| u64::from(row(from)[to.index()] > 0);
            exchange_plan::crossings_by(tree, is_sent)
        } else if self == Algorithm::GOSSIP_FLOOD {
            let is_sent = |from: &PeId| row(*from).iter().any(|bytes| *bytes > 0);
            let messages = tree.pes().filter(is_sent).count() as u64;
            messages.saturating_mul(tree.count() as u64 - 1)
        } else {
            0
        }
    }
}

/// Returns the number of flits in a block, if all flits make this number of crossings, and one flit
/// of each message makes `of_ones`.
fn block_flits(crossings: u64, of_ones: u64) -> u64 {
    let most = BLOCKS.saturating_mul(of_ones);
    crossings
        .div_ceil(most.clamp(FEW_CROSSINGS, MOST_CROSSINGS))
        .max(1)
}

/// Returns the crossings of flits for a plan of blocks. Blocks that do not follow each other step
/// by step cross separately.
pub(super) fn in_flits(
    of_blocks: Vec<ScheduledHop>,
    block: u64,
    flits_of: impl Fn(MessageId) -> u64,
) -> Vec<ScheduledHop> {
    let parts = of_blocks.into_iter().flat_map(|hop| {
        let flits = flits_of(hop.message);
        let (parts, blocks) = match hop.every {
            1 => (1, hop.flits),
            _ => (hop.flits, 1),
        };
        (0..parts).map(move |part| {
            let offset = (hop.offset + part) * block;
            ScheduledHop {
                offset,
                // The last block of a message can be shorter.
                flits: (blocks * block).min(flits - offset),
                first_step: (hop.first_step + part * hop.every - 1) * block + 1,
                every: 1,
                ..hop
            }
        })
    });
    parts.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use flitcast_proto::schedule::pace::Pacing;

    use super::super::gossip_plan::{self, Order};
    use super::super::timetable;
    use super::*;
    use crate::cost::Model;
    use crate::tests::{check_single_ports, of_pairs, random_trees, tree};
    use crate::timing::Timing;

    fn hop(offset: u64, flits: u64, first_step: u64, every: u64) -> ScheduledHop {
        let ends = [PeId(0), PeId(1)];
        let hop = timetable::hop(MessageId(3), ends, [offset, flits], first_step);
        ScheduledHop { every, ..hop }
    }

    #[test]
    fn a_block_has_one_flit_up_to_as_many_crossings_as_are_planned_one_by_one() {
        let many = MOST_CROSSINGS / BLOCKS;
        for (of_ones, most) in [
            (1, FEW_CROSSINGS),
            (many - 1, MOST_CROSSINGS - BLOCKS),
            (many + 1, MOST_CROSSINGS),
        ] {
            let crossings = [0, 1, most, most + 1, 2 * most, 2 * most + 1];
            let blocks = crossings.map(|crossings| block_flits(crossings, of_ones));
            assert_eq!(blocks, [1, 1, 1, 2, 2, 3]);
            assert_eq!(block_flits(u64::MAX, of_ones), u64::MAX.div_ceil(most));
        }
    }

    #[test]
    fn the_least_crossings_are_those_of_a_schedule_of_short_messages() {
        for spec in ["path:5", "star:6", "kary:2:9", "random:8:3", "path:2"] {
            let tree = tree(spec);
            let pes = tree.len();
            // Every third pair of an exchange, and every third message of a gossip, has none.
            let between = |place: usize| place / pes != place % pes && !place.is_multiple_of(3);
            let exchanged = (0..pes * pes).map(|place| u64::from(between(place)));
            let gossiped = (0..pes * pes).map(|place| u64::from(!(place / pes).is_multiple_of(3)));
            let model = Model::unit(pes);
            let timing = Timing::of(&model, 64, Pacing::default());
            for (one, bytes) in [
                (Algorithm::EXCHANGE_TREE, exchanged.collect::<Vec<u64>>()),
                (Algorithm::GOSSIP_FLOOD, gossiped.collect()),
            ] {
                let hops = one.hops(&tree, &bytes, &timing);
                let crossings = hops.iter().map(|hop| hop.flits).sum::<u64>();
                assert_eq!(
                    one.least_crossings(&tree, &bytes),
                    crossings,
                    "{one:?} {spec}"
                );
            }
            assert_eq!(Algorithm::EXCHANGE_ROUNDS.least_crossings(&tree, &[]), 0);
        }
    }

    #[test]
    fn a_crossing_of_blocks_is_one_of_all_their_flits() {
        // 11 flits are two blocks of five and one of one.
        let hops = in_flits(vec![hop(0, 2, 1, 1), hop(2, 1, 4, 1)], 5, |_| 11);
        assert_eq!(hops, [hop(0, 10, 1, 1), hop(10, 1, 16, 1)]);
        let apart = in_flits(vec![hop(0, 3, 2, 3)], 5, |_| 11);
        let expected = [hop(0, 5, 6, 1), hop(5, 5, 21, 1), hop(10, 1, 36, 1)];
        assert_eq!(apart, expected);
    }

    /// Returns the last step of a schedule in which this number of flits crosses, each once.
    fn last_step(hops: &[ScheduledHop], source: impl Fn(MessageId) -> PeId, flits: u64) -> u64 {
        let crossings = check_single_ports(hops, source);
        let each: BTreeSet<_> = crossings.iter().map(|it| (it.2, it.3)).collect();
        assert_eq!([crossings.len(), each.len()], [flits as usize; 2]);
        crossings.last().map_or(0, |last| last.0)
    }

    /// A plan in blocks is a valid plan of flits, and longer by less than a block for each message
    /// that passes the busiest port.
    #[test]
    fn a_plan_in_blocks_is_as_good_within_a_bound() {
        for (seed, mut random, pes, tree) in random_trees(60, &["random"], [2, 8]) {
            let block = 2 + random.below(6);
            let of_pes: Vec<u64> = (0..pes).map(|_| 10 + random.below(90)).collect();
            let gossip = |flits: &[u64]| gossip_plan::one_port(&tree, flits, Order::Hungry);
            let coarse: Vec<u64> = of_pes.iter().map(|it| it.div_ceil(block)).collect();
            let hops = in_flits(gossip(&coarse).hops, block, |it| of_pes[it.index()]);
            let exact = gossip(&of_pes);
            let all = of_pes.iter().sum::<u64>() * (pes - 1);
            let last = last_step(&hops, |message| message.pe(), all);
            assert!(last <= exact.time_steps + block * pes * pes, "seed {seed}");

            let rows = of_pairs(pes, || 10 + random.below(90));
            let row = |row: &Vec<u64>| row.iter().map(|it| it.div_ceil(block)).collect();
            let coarse: Vec<Vec<u64>> = rows.iter().map(row).collect();
            let ends = |it| exchange_plan::ends(it, tree.len());
            let hops = exchange_plan::one_port(&tree, &coarse).hops;
            let hops = in_flits(hops, block, |it| {
                let [from, to] = ends(it).map(PeId::index);
                rows[from][to]
            });
            let exact = exchange_plan::one_port(&tree, &rows);
            let all = exchange_plan::crossings(&tree, &rows);
            let last = last_step(&hops, |message| ends(message)[0], all);
            assert!(last <= exact.time_steps + block * pes * pes, "seed {seed}");
        }
    }
}
