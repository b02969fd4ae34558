//! Random trees and lengths for properties.

use std::sync::Arc;

use flitcast_proto::seeded::SplitMix64;
use flitcast_proto::{PeId, Tree};
use proptest::prelude::*;

/// Returns a tree of up to `max` PEs, each below any earlier one, and a length for each.
pub fn tree_and_flits(max: usize) -> impl Strategy<Value = (Arc<Tree>, Vec<u64>)> {
    (1..=max).prop_flat_map(|len| {
        let parents = (1..len).map(|i| (0..i as u32).boxed()).collect::<Vec<_>>();
        (parents, lengths(len)).prop_map(|(parents, flits)| {
            let parents = std::iter::once(None).chain(parents.into_iter().map(|p| Some(PeId(p))));
            let tree = Tree::from_parents(parents.collect()).unwrap();
            (Arc::new(tree), flits)
        })
    })
}

/// Returns a path whose PEs are numbered in any order, and a length for each.
pub fn path_and_flits(max: usize) -> impl Strategy<Value = (Arc<Tree>, Vec<u64>)> {
    (1..=max).prop_flat_map(|len| {
        let order = Just((1..len as u32).collect::<Vec<_>>()).prop_shuffle();
        (order, lengths(len)).prop_map(|(order, flits)| {
            let mut parents = vec![None; flits.len()];
            let mut above = PeId::ROOT;
            for pe in order {
                parents[pe as usize] = Some(above);
                above = PeId(pe);
            }
            (Arc::new(Tree::from_parents(parents).unwrap()), flits)
        })
    })
}

/// Returns the sources of the nonnull messages in the order of some walk down the tree, in which P0 of a
/// gather can take them.
pub fn walk(tree: &Tree, flits: &[u64], seed: u64) -> Vec<PeId> {
    let mut random = SplitMix64::new(seed);
    let mut order = Vec::new();
    let mut left = vec![tree.root()];
    while let Some(pe) = left.pop() {
        order.extend((flits[pe.index()] > 0).then_some(pe));
        let mut children = tree.children(pe).to_vec();
        children.sort_by_cached_key(|_| random.below(u64::MAX));
        left.append(&mut children);
    }
    order
}

/// Returns a tree that was repaired after failures, and a length for each remaining PE.
pub fn repaired(
    whole: impl Strategy<Value = (Arc<Tree>, Vec<u64>)>,
) -> impl Strategy<Value = (Arc<Tree>, Vec<u64>)> {
    (whole, any::<u64>(), 0..60u64).prop_map(|((tree, mut flits), seed, percent)| {
        let mut random = SplitMix64::new(seed);
        let mut dies = || random.below(100) < percent;
        let dead: Vec<PeId> = tree.pes().skip(1).filter(|_| dies()).collect();
        let tree = tree.without(&dead, |_, _| true).tree;
        for pe in tree.absent() {
            flits[pe.index()] = 0;
        }
        (Arc::new(tree), flits)
    })
}

fn lengths(len: usize) -> impl Strategy<Value = Vec<u64>> {
    let one = prop_oneof![2 => Just(0u64), 3 => 1..4u64, 1 => 1..40u64];
    prop::collection::vec(one, len).prop_map(|mut flits| {
        flits[0] = 0;
        flits
    })
}
