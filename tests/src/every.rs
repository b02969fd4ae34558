//! All small trees, all choices of lengths, all orders.

use std::sync::Arc;

use flitcast_proto::{PeId, Tree};

/// The tested lengths: null, the shortest, one flit more, and one that is longer than every path in
/// these trees.
const LENGTHS: [u64; 4] = [0, 1, 2, 5];

/// Returns every parent vector of `pes` PEs in which parents come before their children: (pes - 1)!
/// vectors, so every shape, each in several numberings.
pub fn trees(pes: usize) -> impl Iterator<Item = Arc<Tree>> {
    let count: usize = (1..pes).product();
    (0..count).map(move |number| {
        let mut rest = number;
        let parents = (1..pes).map(|i| {
            let parent = rest % i;
            rest /= i;
            Some(PeId(parent as u32))
        });
        let parents = std::iter::once(None).chain(parents).collect();
        Arc::new(Tree::from_parents(parents).unwrap())
    })
}

/// Returns every choice of the messages' lengths, with none for P0: 4^(pes - 1) choices.
pub fn flits(pes: usize) -> impl Iterator<Item = Vec<u64>> {
    let count = LENGTHS.len().pow(pes as u32 - 1);
    (0..count).map(move |number| {
        let mut rest = number;
        let lengths = (1..pes).map(|_| {
            let length = LENGTHS[rest % LENGTHS.len()];
            rest /= LENGTHS.len();
            length
        });
        std::iter::once(0).chain(lengths).collect()
    })
}

/// Calls `visit` with the items in each of their orders.
pub fn for_each_order<T>(items: &mut [T], visit: &mut impl FnMut(&[T])) {
    fn from<T>(fixed: usize, items: &mut [T], visit: &mut impl FnMut(&[T])) {
        if fixed == items.len() {
            return visit(items);
        }
        for next in fixed..items.len() {
            items.swap(fixed, next);
            from(fixed + 1, items, visit);
            items.swap(fixed, next);
        }
    }
    from(0, items, visit);
}
