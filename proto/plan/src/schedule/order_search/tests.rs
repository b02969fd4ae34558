//! Orders against all there are, by a replay flit by flit that shares no code with the search.

use std::sync::Arc;

use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::{PeId, Tree};

use super::{Hop, search};
use crate::schedule::scatter::{farthest_first, optimal_steps};
use crate::tests::{lengths, tree};

/// When the last flit is there, each flit of each message over each link, in this order.
fn replay(tree: &Tree, flits: &[u64], hops: &[Hop], order: &[PeId]) -> u64 {
    let mut free = vec![0u64; tree.len()];
    let mut end = 0;
    for &pe in order {
        let way = tree.way_to(pe);
        for _ in 0..flits[pe.index()] {
            let mut at = 0;
            for hop in way.windows(2) {
                let Hop { flit, latency } = hops[hop[1].index()];
                let sent = at.max(free[hop[0].index()]) + flit;
                free[hop[0].index()] = sent;
                at = sent + latency;
            }
            end = end.max(at);
        }
    }
    end
}

fn orders(left: &[PeId]) -> Vec<Vec<PeId>> {
    if left.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (place, &first) in left.iter().enumerate() {
        let mut rest = left.to_vec();
        rest.remove(place);
        for mut order in orders(&rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}

fn random_case(random: &mut SplitMix64, alike: bool) -> (Arc<Tree>, Vec<u64>, Vec<Hop>) {
    let pes = 2 + random.below(5);
    let tree = tree(&format!("random:{pes}:{}", random.below(1 << 20)));
    let flits = lengths(pes, |_| random.below(6));
    let hop = |_| {
        let (flit, latency) = match alike {
            true => (1, 0),
            false => (1 + random.below(6), random.below(12)),
        };
        Hop { flit, latency }
    };
    let hops = (0..pes).map(hop).collect();
    (tree, flits, hops)
}

#[test]
fn no_order_beats_an_optimal_one() {
    let mut random = SplitMix64::new(15);
    let mut gained = 0;
    for case in 0..300 {
        let (tree, flits, hops) = random_case(&mut random, false);
        let farthest = farthest_first(&tree, &flits);
        let all = orders(&farthest);
        let times = all.iter().map(|order| replay(&tree, &flits, &hops, order));
        let optimum = times.min().unwrap();
        let fdf = replay(&tree, &flits, &hops, &farthest);
        for nodes in [0, 3, 100_000] {
            let found = search(&tree, &flits, &hops, nodes).unwrap();
            assert_eq!(found.farthest_first, fdf, "case {case}");
            let took = replay(&tree, &flits, &hops, &found.order);
            assert_eq!(took, found.time, "case {case}");
            assert!((optimum..=fdf).contains(&found.time), "case {case}");
            assert!(found.bound <= optimum, "case {case}");
            if nodes == 100_000 {
                assert_eq!([found.time, found.bound], [optimum; 2], "case {case}");
            }
        }
        gained += u32::from(optimum < fdf);
    }
    assert!(gained > 0, "farthest first was optimal everywhere");
}

#[test]
fn on_links_alike_nothing_beats_farthest_first() {
    let mut random = SplitMix64::new(1993);
    for case in 0..300 {
        let (tree, flits, hops) = random_case(&mut random, true);
        let found = search(&tree, &flits, &hops, 0).unwrap();
        let optimum = optimal_steps(&tree, &flits);
        assert_eq!([found.time, found.bound], [optimum; 2], "case {case}");
        assert_eq!(found.order, farthest_first(&tree, &flits), "case {case}");
    }
}

#[test]
fn times_beyond_counting_are_refused() {
    let tree = tree("path:2");
    let hop = Hop {
        flit: u64::MAX / 2,
        latency: 0,
    };
    assert_eq!(search(&tree, &[0, 3], &[hop; 2], 0), None);
}
