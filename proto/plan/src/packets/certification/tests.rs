//! Replays plans packet by packet, which the planner does not: it computes with whole streams.

use std::sync::Arc;

use flitcast_proto::seeded::SplitMix64;

use super::*;
use crate::packets::model::even;
use crate::packets::tree::Scatter;
use crate::packets::{bounds, plan as plan_scatter};
use crate::tests::{lengths, shaped, tree};

/// A packet on the link from a PE to its parent.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    flits: u64,
    begin: Ticks,
    end: Ticks,
}

/// A random tree with uneven messages and a link's cost.
fn case(seed: u64) -> (Arc<Tree>, Vec<u64>, LinkCost) {
    let mut random = SplitMix64::new(seed);
    let pes = 2 + random.below(11);
    let most = [2, 9, 40][random.below(3) as usize];
    let flits = lengths(pes, |_| random.below(most));
    let beta = ["0", "1/2", "1", "2", "7"][random.below(5) as usize];
    let cost = beta.parse().expect("a set-up cost");
    let tree = shaped(&["path", "kary", "star", "random"], pes, seed);
    (tree, flits, cost)
}

/// Returns when each PE has its order: P0 when it has all certificates, a child after as many control
/// items as its place among the children that have flits below them, in the token's sequence.
fn ordered(tree: &Tree, flits: &[u64], certified: &Certified) -> Vec<Option<Ticks>> {
    let below = tree.subtree_sums(|pe| flits[pe.index()]);
    let mut ordered = vec![None; tree.len()];
    ordered[tree.root().index()] = Some(certified.certified);
    for pe in tree.top_down() {
        let Some(here) = ordered[pe.index()] else {
            continue;
        };
        let children = tree.token_broadcast().order(*pe).iter();
        let with_flits = children.filter(|child| below[child.index()] > 0);
        for (place, child) in (1..).zip(with_flits) {
            ordered[child.index()] = Some(here + place * certified.control);
        }
    }
    ordered
}

/// Returns the packets of a PE's stream: its own, then those of its children in the order in which they
/// arrive, one after the other.
fn stream_of(
    pe: PeId,
    start: Ticks,
    own: u64,
    cap: u64,
    cost: LinkCost,
    relayed: &[Crossing],
) -> Vec<Crossing> {
    let own = even(pe, own, own.div_ceil(cap).max(1)).filter(|run| run.flits > 0);
    let own = own.flat_map(|run| std::iter::repeat_n(run.flits, run.packets as usize));
    let mut free = start;
    let mut stream = Vec::new();
    for flits in own.chain(relayed.iter().map(|packet| packet.flits)) {
        let begin = free;
        free += cost.packet(flits);
        stream.push(Crossing {
            flits,
            begin,
            end: free,
        });
    }
    stream
}

/// Returns the flits that have crossed by a time, as ticks; the last part of a packet's time is its
/// flits'.
fn crossed(packets: &[Crossing], cost: LinkCost, now: Ticks) -> Ticks {
    let of_packet = packets.iter().map(|packet| {
        let flits = cost.flit * Ticks::from(packet.flits);
        now.saturating_sub(packet.end - flits).min(flits)
    });
    of_packet.sum()
}

/// No two packets meet at a port, a relay sends a packet when it has all of it, no data goes before its
/// order or its certified lag, and a relay holds the flits of one largest packet at most. The time is
/// between the bounds.
#[test]
fn uneven_messages_are_gathered_without_a_collision() {
    for seed in 0..400 {
        let (tree, flits, cost) = case(seed);
        let longest = flits.iter().copied().max().unwrap_or(0).max(1);
        for cap in [1, 2, 3, longest.div_ceil(2), longest] {
            for control in [ControlCost::Packet, ControlCost::Free] {
                let certified = plan(&tree, &flits, cost, control, cap).expect("it is small");
                replay(&tree, &flits, cost, &certified);
                let mirror = plan_scatter(&tree, &flits, cost, 0).expect("it is small");
                assert!(mirror.bound <= certified.time, "{seed} {cap}");
                let upper = certified.upper_bound(&tree, &flits, cost);
                assert!(certified.time <= upper, "{seed} {cap} {control:?}");
            }
        }
    }
}

fn replay(tree: &Tree, flits: &[u64], cost: LinkCost, certified: &Certified) {
    let ordered = ordered(tree, flits, certified);
    let mut starts: Vec<Option<Stream>> = vec![None; tree.len()];
    for stream in &certified.streams {
        starts[stream.pe.index()] = Some(*stream);
    }
    let mut links: Vec<Vec<Crossing>> = vec![Vec::new(); tree.len()];
    let mut last = 0;
    for &pe in tree.top_down().iter().rev() {
        let children = tree.children(pe).iter();
        let mut received: Vec<&Vec<Crossing>> = children.map(|pe| &links[pe.index()]).collect();
        received.retain(|link| !link.is_empty());
        received.sort_by_key(|link| link[0].begin);
        let received: Vec<Crossing> = received.into_iter().flatten().copied().collect();
        let mut pairs = received.windows(2);
        let meet = pairs.any(|pair| pair[0].end > pair[1].begin);
        assert!(!meet, "{pe} receives two at once");
        if pe == tree.root() {
            let flits: u64 = received.iter().map(|packet| packet.flits).sum();
            assert_eq!(flits, certified.certificates[pe.index()].flits);
            last = received.last().map_or(0, |packet| packet.end);
            continue;
        }
        let Some(planned) = starts[pe.index()] else {
            assert!(received.is_empty() && flits[pe.index()] == 0);
            continue;
        };
        let (after, start) = (planned.after, planned.start);
        let certificate = certified.certificates[pe.index()];
        assert_eq!(Some(start), ordered[pe.index()].map(|at| at + after));
        assert!(after >= certificate.lag, "{pe} begins too early");
        let own = flits[pe.index()];
        let stream = stream_of(pe, start, own, certified.cap, cost, &received);
        assert_eq!(stream.last().map(|packet| packet.end), Some(planned.end));
        assert_eq!(stream.len() as u64, certificate.packets);
        let relayed = &stream[stream.len() - received.len()..];
        for (here, on) in received.iter().zip(relayed) {
            assert!(here.end <= on.begin, "{pe} has not all of a packet");
        }
        let times = received.iter().chain(relayed);
        let times = times.flat_map(|packet| {
            let flits = cost.flit * Ticks::from(packet.flits);
            [packet.begin, packet.end - flits, packet.end]
        });
        let sizes = received.iter().map(|packet| packet.flits);
        let largest = sizes.max().unwrap_or(0);
        let most = cost.flit * Ticks::from(largest);
        for now in times {
            let held = crossed(&received, cost, now) - crossed(relayed, cost, now);
            assert!(held <= most, "{pe} holds {held}");
        }
        links[pe.index()] = stream;
    }
    assert_eq!(last, certified.time);
    let total: u64 = flits.iter().sum();
    assert_eq!(certified.certificates[0].flits, total);
}

/// The bound of the mirror, and the upper bound, in the golden case of a path (spec-packets.md,
/// sections 7 and 11): 2B = 30, depth 5, k = 3, at most one child, packets of one flit, 27 of the
/// streams.
#[test]
fn the_golden_path_is_between_its_bounds() {
    let (tree, flits) = (tree("path:6"), [0, 2, 3, 0, 2, 1]);
    let cost: LinkCost = "2".parse().expect("a set-up cost");
    let certified = plan(&tree, &flits, cost, ControlCost::Packet, 1).expect("it is small");
    assert_eq!(certified.time, 63);
    let scatter = Scatter::new(&tree, &flits, cost).expect("it is small");
    assert!(bounds::from_the_beginning(&scatter) <= 19);
    let upper = certified.upper_bound(&tree, &flits, cost);
    assert_eq!(upper, 30 + 5 * (3 + 2 + 1) + 8 + 8 * 2);
}
