//! Small scatters in packets, compared with all orders, divisions and interleavings.

use flitcast_plan::packets::model::LinkCost;
use flitcast_plan::packets::plan;
use flitcast_plan::packets::search::DEFAULT_NODES;
use flitcast_proto::Tree;
use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::tree::TreeSpec;

/// All possible schedules, one packet after the other.
struct All {
    /// The path from P0 to the PE of each message.
    ways: Vec<Vec<usize>>,
    setup: u128,
    flit: u128,
    best: u128,
}

impl All {
    /// Continues a schedule from this state: the rest of each message, when each send port is free,
    /// and when the last packet so far was complete.
    fn send(&mut self, left: &[u64], free: &[u128], time: u128) {
        if left.iter().all(|&left| left == 0) {
            self.best = self.best.min(time);
        }
        for (message, &own) in left.iter().enumerate() {
            for flits in 1..=own {
                let (mut left, mut free) = (left.to_vec(), free.to_vec());
                left[message] -= flits;
                let mut whole = 0;
                for hop in self.ways[message].windows(2) {
                    let start = free[hop[0]].max(whole);
                    whole = start + self.setup + self.flit * u128::from(flits);
                    free[hop[0]] = whole;
                }
                self.send(&left, &free, time.max(whole));
            }
        }
    }

    fn least(tree: &Tree, flits: &[u64], [setup, flit]: [u128; 2]) -> u128 {
        let nonnull = tree.pes().filter(|pe| flits[pe.index()] > 0);
        let way = |pe| {
            let way = std::iter::successors(Some(pe), |&pe| tree.parent(pe));
            let mut way: Vec<usize> = way.map(|pe| pe.index()).collect();
            way.reverse();
            way
        };
        let mut all = All {
            ways: nonnull.clone().map(way).collect(),
            setup,
            flit,
            best: u128::MAX,
        };
        let left: Vec<u64> = nonnull.map(|pe| flits[pe.index()]).collect();
        all.send(&left, &vec![0; tree.len()], 0);
        all.best
    }
}

/// No bound is too high, no other schedule is called the best, and a completed search finds the
/// best.
#[test]
fn bounds_and_proofs_hold_on_500_small_trees() {
    let mut random = SplitMix64::new(12);
    let (mut met, mut proven, mut searched) = (0, 0, 0);
    for seed in 0..500 {
        let pes = 4 + random.below(5);
        let spec = format!("random:{pes}:{seed}").parse::<TreeSpec>();
        let spec = spec.expect("it is a tree");
        let tree = spec.build().expect("it is a tree");
        let mut flits = vec![0; tree.len()];
        for _ in 0..2 + random.below(5) {
            flits[1 + random.below(pes - 1) as usize] += 1 + random.below(3);
        }
        while flits.iter().sum::<u64>() > 8 {
            let longest = flits.iter_mut().max().expect("there are some");
            *longest -= 1;
        }
        let betas = [[1, 2], [1, 1], [3, 2], [2, 1], [4, 1], [9, 1]];
        let [above, below] = betas[random.below(6) as usize];
        let cost: LinkCost = format!("{above}/{below}").parse().expect("it is a cost");
        let best = All::least(&tree, &flits, [above, below]);
        let shown = format!("{tree:?} {flits:?} {above}/{below}");
        let unsearched = plan(&tree, &flits, cost, 0).expect("it is small");
        let range = unsearched.bound..=unsearched.time;
        assert!(range.contains(&best), "{shown}");
        met += u32::from(unsearched.bound == unsearched.time);
        // A search that is cut short proves nothing that it should not.
        let cut = plan(&tree, &flits, cost, 10).expect("it is small");
        assert!(cut.bound <= best && best <= cut.time, "{shown}");
        proven += u32::from(cut.bound == cut.time);
        let whole = plan(&tree, &flits, cost, DEFAULT_NODES).expect("it is small");
        assert_eq!((whole.time, whole.bound), (best, best), "{shown}");
        searched += u32::from(whole.time < unsearched.time);
    }
    assert!(300 < met && met < proven && proven < 500, "{met} {proven}");
    assert!(searched > 0, "some trees need a search");
}
