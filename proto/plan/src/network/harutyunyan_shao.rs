//! The round heuristic for minimum broadcast trees, after H. A. Harutyunyan and B. Shao, *An
//! efficient heuristic for broadcasting in networks*, Journal of Parallel and Distributed Computing
//! 66 (2006).
//!
//! It constructs the broadcast round by round. In each round, the nodes without the token are
//! divided into layers by their distance from those that have it. From the outermost layer inwards,
//! every node is assigned to a neighbour one layer nearer, so that no neighbour has much more work
//! than others. The work below a node is its weight, `b` of
//! [`TokenBroadcast`](flitcast_proto::tree::TokenBroadcast). The token moves over a matching between the
//! nodes that have it and the innermost layer. The matching is the best in this sense: no other has
//! a heavier heaviest node, and among equals none a heavier second, and so on.
//!
//! Two things are added to the paper. First, many nodes have the same weight, and their order has a
//! strong influence; it is varied, from a fixed seed, while that helps and the effort is within its
//! limit. Second, some networks need too many rounds for their size (a wheel of 20,000 nodes needs
//! hundreds, each of which recomputes all layers). When a try has used its share of the effort, the
//! present layers make one tree; a second one is made with the present weights: each node calls its
//! heaviest neighbour, which visits every edge only once more.
//!
//! The caller chooses the best tree.

use std::cmp::Reverse;

use flitcast_proto::seeded::SplitMix64;

use super::Network;
use super::matching::Matching;

/// Approximate maximum number of visited neighbours of all tries together: up to a second for ten
/// thousand nodes, some seconds for a million, whose memory exceeds the cache. One whole try on
/// `mesh:100x100` takes 10 million.
const EFFORT: u64 = 100_000_000;

/// Share of the effort for whole rounds of the first try.
const FIRST_TRY: u64 = EFFORT / 2;
/// Share of the effort for whole rounds of each further try.
const FURTHER_TRY: u64 = EFFORT / 16;

/// Additional effort of a try for each node: it is shuffled, sorted, and put into a tree.
const NODE: u64 = 16;

/// Maximum number of tries; more than 100 orders rarely find a better tree.
const TRIES: u64 = 100;

const NO_NODE: u32 = u32::MAX;
const INFORMED: u32 = 0;

/// Calls `good_enough` with the parents of one tree after the other, until it returns true or the
/// effort is spent.
pub(super) fn search(network: &Network, root: u32, mut good_enough: impl FnMut(&[u32]) -> bool) {
    let mut spent = 0;
    for seed in 0..TRIES {
        let share = if seed == 0 { FIRST_TRY } else { FURTHER_TRY };
        let mut rounds = Rounds::new(network, root, rank(network.len(), seed));
        let whole = rounds.play(share);
        if good_enough(&rounds.parents) {
            return;
        }
        if !whole {
            rounds.finish_greedily();
            if good_enough(&rounds.parents) {
                return;
            }
        }
        spent += rounds.spent + NODE * network.len() as u64;
        if spent >= EFFORT {
            return;
        }
    }
}

/// Returns the order of nodes of equal weight: by number for seed 0, otherwise shuffled.
fn rank(len: usize, seed: u64) -> Vec<u32> {
    let mut rank: Vec<u32> = (0..len as u32).collect();
    if seed > 0 {
        let mut rng = SplitMix64::new(seed);
        for i in (1..len).rev() {
            rank.swap(i, rng.below(i as u64 + 1) as usize);
        }
    }
    rank
}

/// One broadcast.
struct Rounds<'a> {
    network: &'a Network,
    rank: Vec<u32>,
    /// The node from which each node receives the token, or would receive it by the layers of this
    /// round; the root is its own.
    parents: Vec<u32>,
    /// 0 for the nodes that have the token; for the others, their layer in this round.
    layer: Vec<u32>,
    /// The nodes with the token that have a neighbour without it.
    border: Vec<u32>,
    /// The nodes without the token, innermost layer first.
    outside: Vec<u32>,
    /// Number of nodes that have the token.
    informed: usize,
    /// The weight of each node in this round.
    weight: Vec<u32>,
    /// Number of nodes that each node was assigned in this round.
    given: Vec<u32>,
    matching: Matching,
    /// Number of neighbours visited so far.
    spent: u64,
}

impl<'a> Rounds<'a> {
    fn new(network: &'a Network, root: u32, rank: Vec<u32>) -> Self {
        let len = network.len();
        let mut layer = vec![NO_NODE; len];
        layer[root as usize] = INFORMED;
        let mut parents = vec![NO_NODE; len];
        parents[root as usize] = root;
        Rounds {
            network,
            rank,
            parents,
            layer,
            border: vec![root],
            outside: Vec::with_capacity(len),
            informed: 1,
            weight: vec![0; len],
            given: vec![0; len],
            matching: Matching::new(len),
            spent: 0,
        }
    }

    /// Constructs the broadcast and returns whether the effort was enough; otherwise the layers are
    /// the tree.
    fn play(&mut self, effort: u64) -> bool {
        loop {
            self.lay_out();
            if self.outside.is_empty() {
                return true;
            }
            let last = self.spent >= effort;
            self.weigh(last);
            if last {
                return false;
            }
            self.call();
        }
    }

    /// Completes the broadcast with the present weights.
    fn finish_greedily(&mut self) {
        // The calling nodes, and those that each could call, the heaviest last.
        let border = std::mem::take(&mut self.border);
        let callers = border.into_iter().map(|n| (n, self.heaviest_last(n)));
        let mut callers: Vec<_> = callers.collect();
        while !callers.is_empty() {
            let mut called = Vec::new();
            callers.retain_mut(|(caller, neighbours)| {
                while let Some(node) = neighbours.pop() {
                    if self.layer[node as usize] != INFORMED {
                        self.layer[node as usize] = INFORMED;
                        self.parents[node as usize] = *caller;
                        called.push(node);
                        return true;
                    }
                }
                false
            });
            callers.extend(called.into_iter().map(|n| (n, self.heaviest_last(n))));
        }
    }

    /// Returns the neighbours without the token, the heaviest last.
    fn heaviest_last(&mut self, node: u32) -> Vec<u32> {
        let neighbours = self.network.neighbours(node);
        self.spent += neighbours.len() as u64;
        let without = neighbours.iter().copied();
        let without = without.filter(|&n| self.layer[n as usize] != INFORMED);
        let mut without: Vec<u32> = without.collect();
        without
            .sort_unstable_by_key(|&n| (self.weight[n as usize], Reverse(self.rank[n as usize])));
        without
    }

    /// Divides the nodes without the token into layers.
    fn lay_out(&mut self) {
        let Rounds { network, layer, .. } = self;
        for &node in &self.outside {
            if layer[node as usize] != INFORMED {
                layer[node as usize] = NO_NODE;
            }
        }
        self.outside.clear();
        let outside = &mut self.outside;
        let spent = &mut self.spent;
        let without = layer.len() - self.informed;
        let mut look = |from: u32, outside: &mut Vec<u32>| {
            let mut is_border = false;
            for &node in network.neighbours(from) {
                *spent += 1;
                if layer[node as usize] == NO_NODE {
                    layer[node as usize] = layer[from as usize] + 1;
                    outside.push(node);
                }
                is_border |= layer[node as usize] != INFORMED;
                if is_border && outside.len() == without {
                    break; // There is no more to be found.
                }
            }
            is_border
        };
        self.border.retain(|&from| look(from, outside));
        let mut done = 0;
        while outside.len() < without
            && let Some(&from) = outside.get(done)
        {
            look(from, outside);
            done += 1;
        }
        *spent += outside.len() as u64;
        for &node in self.border.iter().chain(&self.outside) {
            self.weight[node as usize] = 0;
            self.given[node as usize] = 0;
        }
    }

    /// Assigns every node to one of the layer below, the outermost first; those of the first layer
    /// only if this is the `last` round. Sorts the first layer.
    fn weigh(&mut self, last: bool) {
        let mut end = self.outside.len();
        while end > 0 {
            let layer = self.layer[self.outside[end - 1] as usize];
            let is_it = |&node: &u32| self.layer[node as usize] < layer;
            let start = self.outside[..end].partition_point(is_it);
            let (weight, rank) = (&self.weight, &self.rank);
            self.outside[start..end].sort_unstable_by_key(|&node| {
                (Reverse(weight[node as usize]), rank[node as usize])
            });
            if layer > 1 || last {
                for place in start..end {
                    self.give(self.outside[place], layer);
                }
            }
            end = start;
        }
    }

    fn give(&mut self, node: u32, layer: u32) {
        let neighbours = self.network.neighbours(node);
        self.spent += neighbours.len() as u64;
        let below = self.weight[node as usize];
        // Nodes are assigned by decreasing weight, in the order in which they would receive the
        // token.
        let then = |&n: &u32| {
            let n = n as usize;
            (
                self.weight[n].max(self.given[n] + 1 + below),
                self.given[n],
                self.rank[n],
            )
        };
        let nearer = neighbours.iter().copied();
        let nearer = nearer.filter(|&n| self.layer[n as usize] == layer - 1);
        if let Some(parent) = nearer.min_by_key(then) {
            self.weight[parent as usize] = then(&parent).0;
            self.given[parent as usize] += 1;
            self.parents[node as usize] = parent;
        }
    }

    /// Passes the token on.
    fn call(&mut self) {
        let is_first = |&node: &u32| self.layer[node as usize] == 1;
        let first = self.outside.partition_point(is_first);
        self.matching
            .clear(self.border.iter().chain(&self.outside[..first]));
        let mut callers = self.border.len();
        for &node in &self.outside[..first] {
            if callers == 0 {
                break;
            }
            let (layer, spent) = (&self.layer, &mut self.spent);
            let added = self.matching.add(node, |called| {
                let neighbours = self.network.neighbours(called);
                *spent += neighbours.len() as u64;
                let is_caller = |n: &u32| layer[*n as usize] == INFORMED;
                neighbours.iter().copied().filter(is_caller)
            });
            callers -= usize::from(added);
        }
        for &node in &self.outside[..first] {
            if let Some(caller) = self.matching.partner(node) {
                self.parents[node as usize] = caller;
                self.layer[node as usize] = INFORMED;
                self.border.push(node);
                self.informed += 1;
            }
        }
    }
}
