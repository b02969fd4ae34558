//! The orders in which P0 can take the messages of a gather.
//!
//! A PE sends its own message and then its children's streams, one after the other, each without a gap
//! (paper 000, section III-B). So P0 can take the messages in the order of any depth-first walk of the
//! tree: a PE's message before those of the PEs below it, and those of a subtree one after the other. On
//! a path that is one order, nearest source first.

use flitcast_proto::ops::PeSchedule;
use flitcast_proto::{PeId, Tree};
use thiserror::Error;

/// The rank of a child that has no stream: behind all others.
const NO_STREAM: u32 = u32::MAX;

/// An order in which no gather can take the messages, as a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct GatherOrderError(String);

/// The part of an order that a subtree has.
#[derive(Clone, Copy)]
struct Share {
    first: usize,
    last: usize,
    count: usize,
}

/// Returns the ranks of each PE's children, by PE index and then in index order of the children: the PE
/// takes their streams by increasing rank. `order` names the sources of all nonnull messages once.
pub fn child_ranks(tree: &Tree, order: &[PeId]) -> Result<Vec<Vec<u32>>, GatherOrderError> {
    // An order may name PEs that a repaired tree lacks.
    let order = order.iter().copied().filter(|pe| tree.contains(*pe));
    let order: Vec<PeId> = order.collect();
    let mut shares: Vec<Option<Share>> = vec![None; tree.len()];
    let mut places = vec![None; tree.len()];
    for (place, &pe) in order.iter().enumerate() {
        places[pe.index()] = Some(place);
    }
    for &pe in tree.top_down()[1..].iter().rev() {
        let below = tree.children(pe).iter();
        let below = below.filter_map(|child| shares[child.index()]);
        let own = places[pe.index()].map(|place| Share {
            first: place,
            last: place,
            count: 1,
        });
        let whole = own.into_iter().chain(below).reduce(|one, other| Share {
            first: one.first.min(other.first),
            last: one.last.max(other.last),
            count: one.count + other.count,
        });
        if let Some(share) = whole {
            check(tree, pe, &order, share, places[pe.index()])?;
        }
        shares[pe.index()] = whole;
    }
    let rank = |child: &PeId| shares[child.index()].map_or(NO_STREAM, |share| share.first as u32);
    let of_pe = |pe| tree.children(pe).iter().map(rank).collect();
    Ok(tree.ids().map(of_pe).collect())
}

/// Checks the part of an order that the subtree of `top` has.
fn check(
    tree: &Tree,
    top: PeId,
    order: &[PeId],
    share: Share,
    own: Option<usize>,
) -> Result<(), GatherOrderError> {
    let Share { first, last, count } = share;
    let is_inside = |pe: PeId| pe == top || tree.child_toward(top, pe).is_some();
    if last - first + 1 > count
        && let Some(&between) = order[first..last].iter().find(|pe| !is_inside(**pe))
    {
        return Err(GatherOrderError(format!(
            "{between} stands between {} and {}, which are in the subtree of {top}; a PE sends the \
             messages of its subtree one after the other",
            order[first], order[last]
        )));
    }
    let below = order[first];
    match own.is_some_and(|place| place > first) {
        true => Err(GatherOrderError(format!(
            "{top} comes after {below}, which is below it; a PE sends its own message first"
        ))),
        false => Ok(()),
    }
}

/// Sets the order in which P0 takes the messages of a gather.
pub fn set_order(
    tree: &Tree,
    schedules: &mut [PeSchedule],
    order: &[PeId],
) -> Result<(), GatherOrderError> {
    for (schedule, ranks) in schedules.iter_mut().zip(child_ranks(tree, order)?) {
        // A single stream has no rank.
        schedule.child_ranks = if ranks.len() > 1 { ranks } else { Vec::new() };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tree;

    /// P1 with P3 and P4 below it, P2 with P5 below it.
    fn ranks(order: &[u32]) -> Result<Vec<Vec<u32>>, GatherOrderError> {
        let tree = tree("parents:0,0,1,1,2");
        let order: Vec<PeId> = order.iter().copied().map(PeId).collect();
        child_ranks(&tree, &order)
    }

    #[test]
    fn a_walk_of_the_tree_gives_each_child_a_rank() {
        let none: Vec<u32> = Vec::new();
        let all = ranks(&[2, 5, 1, 4, 3]).expect("it is a walk");
        assert_eq!(all[..3], [vec![2, 0], vec![4, 3], vec![1]]);
        assert_eq!(all[3], none);
        let some = ranks(&[4, 5]).expect("it is a walk");
        assert_eq!(some[..3], [vec![0, 1], vec![NO_STREAM, 0], vec![1]]);
    }

    #[test]
    fn any_other_order_is_refused_with_the_pe_that_is_in_the_way() {
        let error = |order: &[u32]| ranks(order).unwrap_err().to_string();
        let late = error(&[3, 1, 4, 2, 5]);
        assert!(late.starts_with("P1 comes after P3"), "{late}");
        let between = error(&[1, 3, 2, 5, 4]);
        assert!(between.contains("P2 stands between P1 and P4"), "{between}");
        assert!(between.contains("subtree of P1"), "{between}");
    }
}
