//! The round heuristic for minimum broadcast trees, after H. A. Harutyunyan and
//! B. Shao, *An efficient heuristic for broadcasting in networks*, Journal of
//! Parallel and Distributed Computing 66 (2006).
//!
//! It plays the broadcast round by round. In each, the nodes without the token are
//! put into layers by their distance from those that have it; from the outermost
//! layer inwards every node is given to a neighbour one layer nearer, so that no
//! neighbour gets much more to do than others; what a node then has to do below it
//! is its weight, `b` of [`TokenBroadcast`](crate::tree::TokenBroadcast). The token
//! goes over a matching between those that have it and the innermost layer that is
//! best in this sense: no other has a heavier heaviest node, and of those none a
//! heavier second, and so on.
//!
//! Two things are ours. Many nodes have the same weight, and the order in which they
//! are taken decides much: it is varied, from a fixed seed, for as long as that helps
//! and the effort is bounded. And where a network needs too many rounds for its size
//! (a ring of a million nodes needs half a million), the layers of the last round
//! that could be afforded are the tree.
//!
//! Which tree is best is not decided here.

use std::cmp::Reverse;

use crate::seeded::SplitMix64;

use super::Network;

/// Looks at neighbours that all tries together may take: a second or so. One try on
/// `mesh:100x100` takes 10 million.
const EFFORT: u64 = 100_000_000;

/// Tries at most. What 100 orders do not find, more hardly do.
const TRIES: u64 = 100;

const NOBODY: u32 = u32::MAX;
const INFORMED: u32 = 0;

/// Calls `good_enough` with the parents of one tree after the other, until it says
/// yes or the effort is spent.
pub(super) fn search(network: &Network, root: u32, mut good_enough: impl FnMut(&[u32]) -> bool) {
    let mut spent = 0;
    for seed in 0..TRIES {
        let mut rounds = Rounds::new(network, root, rank(network.len(), seed));
        rounds.play(EFFORT - spent);
        spent += rounds.spent;
        if good_enough(&rounds.parents) || spent >= EFFORT / 2 {
            return;
        }
    }
}

/// The order in which nodes of equal weight are taken: by number first, then shuffled.
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
    /// Whom each node has the token from, or would have it from by the layers of this
    /// round; the root from itself.
    parents: Vec<u32>,
    /// 0 for those that have the token, for the others their layer of this round.
    layer: Vec<u32>,
    /// Those that have the token and a neighbour that has not.
    border: Vec<u32>,
    /// Those without the token, innermost layer first.
    outside: Vec<u32>,
    /// The weight of each node, and how many it was given, in this round.
    weight: Vec<u32>,
    given: Vec<u32>,
    matching: Matching,
    /// Looks at neighbours so far.
    spent: u64,
}

impl<'a> Rounds<'a> {
    fn new(network: &'a Network, root: u32, rank: Vec<u32>) -> Self {
        let len = network.len();
        let mut layer = vec![NOBODY; len];
        layer[root as usize] = INFORMED;
        let mut parents = vec![NOBODY; len];
        parents[root as usize] = root;
        Rounds {
            network,
            rank,
            parents,
            layer,
            border: vec![root],
            outside: Vec::with_capacity(len),
            weight: vec![0; len],
            given: vec![0; len],
            matching: Matching::new(len),
            spent: 0,
        }
    }

    fn play(&mut self, effort: u64) {
        loop {
            self.lay_out();
            if self.outside.is_empty() {
                return;
            }
            let last = self.spent >= effort / 2;
            self.weigh(last);
            if last {
                return;
            }
            self.call();
        }
    }

    /// Puts those without the token into layers.
    fn lay_out(&mut self) {
        let Rounds { network, layer, .. } = self;
        for &node in &self.outside {
            if layer[node as usize] != INFORMED {
                layer[node as usize] = NOBODY;
            }
        }
        self.outside.clear();
        let outside = &mut self.outside;
        let spent = &mut self.spent;
        let mut look = |from: u32, outside: &mut Vec<u32>| {
            let neighbours = network.neighbours(from);
            *spent += neighbours.len() as u64;
            let mut is_border = false;
            for &node in neighbours {
                if layer[node as usize] == NOBODY {
                    layer[node as usize] = layer[from as usize] + 1;
                    outside.push(node);
                }
                is_border |= layer[node as usize] != INFORMED;
            }
            is_border
        };
        self.border.retain(|&from| look(from, outside));
        let mut done = 0;
        while let Some(&from) = outside.get(done) {
            look(from, outside);
            done += 1;
        }
        *spent += outside.len() as u64;
        for &node in self.border.iter().chain(&self.outside) {
            self.weight[node as usize] = 0;
            self.given[node as usize] = 0;
        }
    }

    /// Gives every node to one of the layer below, the outermost first; those of the
    /// first layer only if this is the `last` round. Sorts the first layer.
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
        // Its neighbours got theirs by decreasing weight, as the token goes.
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
            let is_caller = |n: u32| self.layer[n as usize] == INFORMED;
            let added = self
                .matching
                .add(self.network, node, is_caller, &mut self.spent);
            callers -= usize::from(added);
        }
        for &node in &self.outside[..first] {
            if let Some(caller) = self.matching.caller(node) {
                self.parents[node as usize] = caller;
                self.layer[node as usize] = INFORMED;
                self.border.push(node);
            }
        }
    }
}

/// A matching between callers and called that grows by augmenting paths. Who is in
/// it, stays; who cannot be added, never can: so adding by decreasing weight gives
/// the best in the sense above (the called that can be matched are a matroid).
struct Matching {
    partner: Vec<u32>,
    /// On the way to each caller, the called before it.
    from: Vec<u32>,
    /// Whose search has looked at the caller last; after a search in vain it stays,
    /// since no later search gets anywhere from there.
    seen: Vec<bool>,
    queue: Vec<u32>,
    looked_at: Vec<u32>,
}

impl Matching {
    fn new(len: usize) -> Self {
        Matching {
            partner: vec![NOBODY; len],
            from: vec![NOBODY; len],
            seen: vec![false; len],
            queue: Vec::new(),
            looked_at: Vec::new(),
        }
    }

    fn clear<'n>(&mut self, nodes: impl Iterator<Item = &'n u32>) {
        for &node in nodes {
            self.partner[node as usize] = NOBODY;
            self.seen[node as usize] = false;
        }
    }

    fn caller(&self, called: u32) -> Option<u32> {
        let caller = self.partner[called as usize];
        (caller != NOBODY).then_some(caller)
    }

    /// Adds a node to the called, if all who are called already can be as well.
    fn add(
        &mut self,
        network: &Network,
        node: u32,
        is_caller: impl Fn(u32) -> bool,
        spent: &mut u64,
    ) -> bool {
        self.queue.clear();
        self.queue.push(node);
        self.looked_at.clear();
        let mut done = 0;
        while let Some(&called) = self.queue.get(done) {
            done += 1;
            let neighbours = network.neighbours(called);
            *spent += neighbours.len() as u64;
            for &caller in neighbours {
                if !is_caller(caller) || self.seen[caller as usize] {
                    continue;
                }
                self.seen[caller as usize] = true;
                self.looked_at.push(caller);
                self.from[caller as usize] = called;
                match self.partner[caller as usize] {
                    NOBODY => {
                        self.turn_over(caller, node);
                        for &caller in &self.looked_at {
                            self.seen[caller as usize] = false;
                        }
                        return true;
                    }
                    called => self.queue.push(called),
                }
            }
        }
        false
    }

    /// Matches every caller on the way from `node` to `end` with the one before it.
    fn turn_over(&mut self, end: u32, node: u32) {
        let mut caller = end;
        loop {
            let called = self.from[caller as usize];
            let next = std::mem::replace(&mut self.partner[called as usize], caller);
            self.partner[caller as usize] = called;
            if called == node {
                return;
            }
            caller = next;
        }
    }
}
