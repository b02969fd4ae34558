//! Packets with flits of several messages: fewer packets, and so fewer set-ups, if messages are short
//! (paper 003, figure 6.2; the schedules and bounds here are not in the paper).
//!
//! The PEs of a packet's messages are on one path from P0. A packet has the flits of all of them up to
//! the nearest of these PEs, which keeps its own flits and forwards the rest as a smaller packet.
//!
//! Under a cap on packet sizes, messages are put into packets farthest destination first: a message
//! first fills the packets that pass its PE, then it gets further packets, all of them full but the
//! last, or all of one size. The best of these, or the best packets without mixing, is optimal in all
//! cases of a few flits on a path that a test searches completely.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use flitcast_proto::{PeId, Tree};

use super::bounds::growing;
use super::caps::caps;
use super::model::{
    LinkCost, Message, PacketPlanError, Part, Run, Ticks, Timetable, best_alone, even, messages,
    time_alone,
};
use super::{Method, PacketPlan, plan};

/// Limits of tried caps, and of link crossings of packets for all of them: half a second.
const MOST_CAPS: usize = 300;
const MOST_CROSSINGS: u64 = 20_000_000;

/// Returns the best schedule found whose packets may mix messages. `nodes` limits the search for one
/// whose packets do not.
pub fn plan_mixed(
    tree: &Tree,
    flits: &[u64],
    cost: LinkCost,
    nodes: u64,
) -> Result<PacketPlan, PacketPlanError> {
    let mut best = plan(tree, flits, cost, nodes)?;
    let messages = messages(tree, flits);
    // Without a set-up cost single flits are optimal, whatever packets may contain.
    if cost.setup == 0 || messages.len() < 2 {
        return Ok(best);
    }
    best.bound = least_time(tree, flits, cost);
    let total: u64 = flits.iter().sum();
    // Messages are farthest first, and at least two.
    let hops = messages[0].hops;
    let lengths = messages.iter().map(|message| message.flits);
    let caps = caps(lengths.chain([total]), MOST_CAPS).tried;
    let mut crossings = 0;
    for cap in caps.iter().rev().map(|cap| cap.least) {
        // The smallest caps, which make the most packets, come last.
        let packets = total.div_ceil(cap).saturating_add(messages.len() as u64);
        crossings += packets.saturating_mul(2 * hops);
        if best.time == best.bound || crossings > MOST_CROSSINGS {
            break;
        }
        for is_even in [false, true] {
            let sequence = filled(tree, &messages, cap, is_even);
            let time = time_of(tree, cost, &sequence);
            if time < best.time {
                best = PacketPlan {
                    sequence,
                    time,
                    method: Method::Mixed,
                    ..best
                };
            }
        }
    }
    Ok(best)
}

/// Returns the time when the last of these packets is complete.
pub fn time_of(tree: &Tree, cost: LinkCost, sequence: &[Run]) -> Ticks {
    let mut timetable = Timetable::new(tree, cost);
    let mut time = 0;
    for run in sequence {
        for _ in 0..run.packets {
            let whole = timetable.dispatch(run).whole.into_iter();
            time = whole.fold(time, Ticks::max);
        }
    }
    time
}

/// Puts messages, farthest first, into packets of at most `cap` flits. Packets that a message begins
/// are full but the last, or even.
fn filled(tree: &Tree, messages: &[Message], cap: u64, is_even: bool) -> Vec<Run> {
    let mut packets: Vec<Run> = Vec::new();
    // The packets with room that pass each PE, the deepest PE first.
    let mut passing: BTreeMap<(Reverse<u64>, PeId), Vec<usize>> = BTreeMap::new();
    let mut own: BTreeMap<PeId, u64> = BTreeMap::new();
    for message in messages {
        own.insert(message.pe, message.flits);
        passing.insert((Reverse(message.hops), message.pe), Vec::new());
    }
    while let Some(((Reverse(hops), pe), mut here)) = passing.pop_first() {
        let mut left = own.get(&pe).copied().unwrap_or(0);
        here.sort_unstable();
        for &packet in &here {
            let packet = &mut packets[packet];
            let flits = left.min(cap - packet.size());
            if flits > 0 {
                packet.also.push(Part { pe, flits });
                left -= flits;
            }
        }
        let begun = packets.len();
        let runs = match is_even {
            true => even(pe, left, left.div_ceil(cap).max(1)).collect(),
            false => vec![Run::new(pe, cap, left / cap), Run::new(pe, left % cap, 1)],
        };
        for run in runs.into_iter().filter(|run| run.flits > 0) {
            let one = Run::new(pe, run.flits, 1);
            packets.extend((0..run.packets).map(|_| one.clone()));
        }
        here.extend(begun..packets.len());
        here.retain(|packet| packets[*packet].size() < cap);
        if let Some(parent) = tree.parent(pe).filter(|_| hops > 1) {
            let above = passing.entry((Reverse(hops - 1), parent));
            above.or_default().extend(here);
        }
    }
    packets
}

/// Returns a lower bound of the time of any packets that mix messages. All flits for a PE and those
/// below it cross the links to that PE, in no less time than one message of this length; and all flits
/// for some depth or more leave through P0's port, in at least a packet for each PE with a message
/// that has none with a message below it.
pub fn least_time(tree: &Tree, flits: &[u64], cost: LinkCost) -> Ticks {
    let below = tree.subtree_sums(|pe| flits[pe.index()]);
    let mut by_depth: BTreeMap<Reverse<u64>, [u64; 2]> = BTreeMap::new();
    let mut bound = 0;
    for pe in tree.below_root().filter(|pe| below[pe.index()] > 0) {
        let hops = u64::from(tree.depth(pe));
        let own = flits[pe.index()];
        let [sum, lowest] = by_depth.entry(Reverse(hops)).or_default();
        *sum += own;
        *lowest += u64::from(own == below[pe.index()]);
        let all = Message {
            pe,
            hops,
            flits: below[pe.index()],
        };
        // The best number of packets is never worse than no split.
        if time_alone(cost, &all, 1) > bound {
            bound = bound.max(time_alone(cost, &all, best_alone(cost, &all)));
        }
    }
    let (mut beyond, mut packets) = (0, 0);
    for (Reverse(hops), [flits, lowest]) in by_depth {
        beyond += flits;
        packets += lowest;
        bound = bound.max(growing(cost, hops, packets, beyond));
    }
    bound
}

#[cfg(test)]
mod tests {
    use flitcast_proto::seeded::SplitMix64;

    use super::super::{Split, plan_split};
    use super::*;
    use crate::tests::{lengths, shaped, tree};

    /// Returns the time of the best packets of any contents in any order on a path, by trying all.
    fn least(beta: u64, left: &mut [u64], free: &[u64], time: u64, best: &mut u64) {
        if left.iter().all(|flits| *flits == 0) {
            *best = time.min(*best);
            return;
        }
        let mut contents = vec![0; left.len()];
        loop {
            // The next contents, as a number whose digits are the flits for each PE.
            let Some(place) = (1..left.len()).find(|place| contents[*place] < left[*place]) else {
                return;
            };
            contents[1..place].fill(0);
            contents[place] += 1;
            let (mut free, mut time, mut end) = (free.to_vec(), time, 0);
            for sender in 0..left.len() - 1 {
                let size: u64 = contents[sender + 1..].iter().sum();
                if size > 0 {
                    end = end.max(free[sender]) + beta + size;
                    free[sender] = end;
                }
                if contents[sender + 1] > 0 {
                    time = time.max(end);
                }
            }
            let rest: u64 = left.iter().sum::<u64>() - contents.iter().sum::<u64>();
            let more = if rest > 0 { beta + rest } else { 0 };
            if time.max(free[0] + more) < *best {
                let mut left: Vec<u64> = left.iter().zip(&contents).map(|(l, c)| l - c).collect();
                least(beta, &mut left, &free, time, best);
            }
        }
    }

    #[test]
    fn short_messages_on_paths_are_mixed_optimally() {
        let mut random = SplitMix64::new(1);
        let mut gained = 0;
        for _ in 0..150 {
            let pes = 3 + random.below(3);
            let flits = lengths(pes, |_| random.below(4));
            if flits.iter().sum::<u64>() > 7 {
                continue;
            }
            let beta = 1 + random.below(4);
            let cost: LinkCost = beta.to_string().parse().expect("it is a set-up cost");
            let tree = tree(&format!("path:{pes}"));
            let mixed = plan_mixed(&tree, &flits, cost, 0).expect("it is small");
            let apart = plan(&tree, &flits, cost, 0).expect("it is small");
            let mut best = u64::MAX;
            let free = vec![0; tree.len()];
            least(beta, &mut flits.clone(), &free, 0, &mut best);
            assert_eq!(mixed.time, best.into(), "{flits:?}, {beta}");
            assert!((mixed.bound..=apart.time).contains(&mixed.time));
            gained += usize::from(mixed.time < apart.time);
        }
        assert!(gained > 5, "{gained}");
    }

    /// Every flit is sent, a packet has no more than PEs on one path from P0, and the bound holds.
    #[test]
    fn packets_on_trees_are_whole_and_no_slower_than_unmixed_ones() {
        let mut random = SplitMix64::new(2);
        let mut gained = 0;
        for seed in 0..60 {
            let pes = 2 + random.below(14);
            let tree = shaped(&["random"], pes, seed);
            let flits = lengths(pes, |_| random.below(6));
            let cost: LinkCost = "7/2".parse().expect("it is a set-up cost");
            let mixed = plan_mixed(&tree, &flits, cost, 0).expect("it is small");
            let apart = plan(&tree, &flits, cost, 0).expect("it is small");
            assert_eq!(time_of(&tree, cost, &mixed.sequence), mixed.time);
            assert!((mixed.bound..=apart.time).contains(&mixed.time), "{seed}");
            gained += usize::from(mixed.time < apart.time);
            // The same packets as a requested sequence: it is checked.
            let single = mixed.sequence.iter().flat_map(|run| {
                let one = Run {
                    packets: 1,
                    ..run.clone()
                };
                vec![one; run.packets as usize]
            });
            let split = Split::Sequence(single.collect());
            let given = plan_split(&tree, &flits, cost, &split, None).expect("it is a sequence");
            assert_eq!(given.time, mixed.time, "{seed}");
        }
        assert!(gained > 20, "{gained}");
    }
}
