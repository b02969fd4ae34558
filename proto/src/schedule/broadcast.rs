//! Broadcasting: every PE passes each flit on to its children, one after the other.

use std::cmp::Reverse;

use crate::tree::TokenBroadcast;
use crate::{PeId, Tree};

/// Steps that no broadcast of `flits` flits from P0 takes less than, where a PE sends one flit a
/// step (a bound of ours). `R(leaf) = 0`; `R(v)` is the greater of two: the k-th child by
/// decreasing b has the last flit after `k * flits` steps at the earliest, and the k-th by
/// decreasing R begins k steps after its parent.
pub fn least_steps(tree: &Tree, flits: u64) -> u64 {
    if flits == 0 {
        return 0;
    }
    let token = TokenBroadcast::of(tree);
    let mut least = vec![0; tree.len()];
    for &pe in tree.top_down().iter().rev() {
        let by_token = (1..).zip(token.order(pe));
        let by_token = by_token.map(|(k, child)| k * flits + token.b(*child));
        let mut children: Vec<u64> = tree.children(pe).iter().map(|c| least[c.index()]).collect();
        children.sort_unstable_by_key(|steps| Reverse(*steps));
        let by_steps = (1..).zip(children).map(|(k, steps)| k + steps);
        least[pe.index()] = by_token.chain(by_steps).max().unwrap_or(0);
    }
    least[PeId::ROOT.index()]
}

/// Steps of the schedule *rounds*: flit after flit, each as the token goes, and the next one when
/// the PE with the most children has passed the last on.
pub fn rounds_steps(tree: &Tree, flits: u64) -> u64 {
    let most_children = tree.pes().map(|pe| tree.children(pe).len() as u64).max();
    match flits {
        0 => 0,
        _ => (flits - 1) * most_children.unwrap_or(0) + TokenBroadcast::of(tree).steps(),
    }
}
