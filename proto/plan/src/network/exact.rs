//! Minimum broadcast trees of small networks, by complete search.
//!
//! The search looks for a broadcast of a given number of steps, first of the lower bound and then
//! of one more each time. A state is the set of nodes that have the token. In a step, these nodes
//! call as many others as possible, because fewer is never better. Sets from which a broadcast was
//! found to be impossible are remembered; sets from which too many nodes are out of reach are
//! skipped. A set is a 64-bit word, so there are at most 64 nodes.

use std::collections::BTreeMap;

use super::Network;
use super::matching::Matching;

/// Maximum number of nodes for which the search is complete: it visits at most 2^15 sets, in well
/// below a second.
pub(super) const ALWAYS: usize = 16;

/// Maximum number of choices and sets that are visited for larger networks: well below a second.
const EFFORT: u64 = 1_000_000;

/// Returns the parents of a minimum broadcast tree of `low` to `high - 1` steps; `None` if there is
/// none, if none was found within the permitted effort, or if the network is too large.
pub(super) fn search(network: &Network, root: u32, low: u64, high: u64) -> Option<Vec<u32>> {
    let len = network.len();
    if len > 64 {
        return None;
    }
    let bits = |node: u32| {
        let neighbours = network.neighbours(node).iter();
        neighbours.fold(0, |set, n| set | 1 << n)
    };
    let mut search = Search {
        neighbours: (0..len as u32).map(bits).collect(),
        all: u64::MAX >> (64 - len),
        impossible: BTreeMap::new(),
        parents: vec![root; len],
        left: if len <= ALWAYS { u64::MAX } else { EFFORT },
    };
    for steps in low..high {
        search.impossible.clear();
        if search.from(1 << root, steps as u32) {
            return Some(search.parents);
        }
        if search.left == 0 {
            break;
        }
    }
    None
}

struct Search {
    neighbours: Vec<u64>,
    all: u64,
    /// Largest number of steps for which a broadcast from each set is impossible.
    impossible: BTreeMap<u64, u32>,
    /// Parents in the broadcast that was found.
    parents: Vec<u32>,
    /// Number of choices and sets that may still be visited.
    left: u64,
}

/// One set of calls in a step.
#[derive(Clone)]
struct Calls {
    matching: Matching,
    callers: u64,
    called: u64,
}

impl Search {
    /// Returns whether all nodes get the token within `steps` once `informed` have it. The
    /// recursion has at most 64 steps, each of 64 choices.
    fn from(&mut self, informed: u64, steps: u32) -> bool {
        if informed == self.all {
            return true;
        }
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        if !self.in_reach(informed, steps) {
            return false;
        }
        let impossible = self.impossible.get(&informed);
        if impossible.is_some_and(|&most| most >= steps) {
            return false;
        }
        let border = nodes(informed).fold(0, |set, n| set | self.neighbours[n]) & !informed;
        let mut choices: Vec<usize> = nodes(border).collect();
        // Nodes with most left to do are more likely to be needed now.
        choices.sort_by_key(|&n| {
            let reach = self.distance_beyond(1 << n, informed);
            std::cmp::Reverse((reach, (self.neighbours[n] & !informed).count_ones()))
        });
        let none = Calls {
            matching: Matching::new(self.neighbours.len()),
            callers: informed,
            called: 0,
        };
        let mut most = none.clone();
        let rank = choices.iter().filter(|&&n| self.add(&mut most, n)).count();
        let found = self.choose(&none, &choices, rank, steps);
        if !found && self.left > 0 {
            self.impossible.insert(informed, steps);
        }
        found
    }

    /// Tries all sets of `wanted` more of `choices` that can be called at once.
    fn choose(&mut self, calls: &Calls, choices: &[usize], wanted: usize, steps: u32) -> bool {
        if wanted == 0 {
            let found = self.from(calls.callers | calls.called, steps - 1);
            if found {
                for called in nodes(calls.called) {
                    let caller = calls.matching.partner(called as u32);
                    self.parents[called] = caller.unwrap_or(self.parents[called]);
                }
            }
            return found;
        }
        let [first, rest @ ..] = choices else {
            return false;
        };
        if choices.len() < wanted || self.left == 0 {
            return false;
        }
        self.left -= 1;
        let mut with = calls.clone();
        if self.add(&mut with, *first) && self.choose(&with, rest, wanted - 1, steps) {
            return true;
        }
        self.choose(calls, rest, wanted, steps)
    }

    /// Adds a node to the called ones, if all can still be called at once.
    fn add(&self, calls: &mut Calls, node: usize) -> bool {
        let callers = calls.callers;
        let added = calls.matching.add(node as u32, |called| {
            nodes(self.neighbours[called as usize] & callers).map(|caller| caller as u32)
        });
        calls.called |= u64::from(added) << node;
        added
    }

    /// Returns whether the bound of [`broadcast_lower_bound`](super::broadcast_lower_bound) permits
    /// a broadcast, with each of `informed` as a root.
    fn in_reach(&self, informed: u64, steps: u32) -> bool {
        let roots = u64::from(informed.count_ones());
        let (mut nearer, mut ball) = (0, informed);
        for reached in reached(steps.into()) {
            if u64::from((self.all & !nearer).count_ones()) > reached.saturating_mul(roots) {
                return false;
            }
            (nearer, ball) = (ball, self.around(ball));
        }
        nearer == self.all
    }

    fn around(&self, set: u64) -> u64 {
        nodes(set).fold(set, |all, n| all | self.neighbours[n])
    }

    /// Returns the largest distance of a node that is nearer to `from` than to `informed`.
    fn distance_beyond(&self, from: u64, informed: u64) -> u32 {
        let (mut here, mut there, mut distance) = (from, informed & !from, 0);
        loop {
            let taken = here | there;
            let next = self.around(here) & !taken;
            let others = self.around(there) & !taken;
            if next == 0 {
                return distance;
            }
            distance += 1;
            here |= next;
            there |= others & !next;
        }
    }
}

/// Returns the largest number of nodes at each distance or beyond, from 0 on, that can have the token of
/// one root after this number of steps ([`broadcast_lower_bound`](super::broadcast_lower_bound)). Numbers
/// from [`MANY`] on need not be exact.
pub(super) fn reached(steps: u64) -> impl Iterator<Item = u64> {
    let mut ways = 1u64; // binomial(steps, links), and from there on
    let mut sum = 0u64;
    let mut reached: Vec<u64> = Vec::with_capacity(steps as usize + 1);
    for links in (0..=steps).rev() {
        sum = sum.saturating_add(ways);
        reached.push(sum);
        // No network has as many nodes, so larger numbers need not be exact.
        ways = (ways * links / (steps - links + 1)).min(MANY);
    }
    reached.into_iter().rev()
}

/// More nodes than a network can have.
const MANY: u64 = 1 << 32;

/// Returns the nodes of a set.
fn nodes(set: u64) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(set), |set| Some(set & set.wrapping_sub(1)))
        .take_while(|&set| set != 0)
        .map(|set| set.trailing_zeros() as usize)
}
