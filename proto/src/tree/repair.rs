//! A tree without failed PEs: new parents for their children, and the PEs that become unreachable.

use super::Tree;
use crate::PeId;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The tree without the failed and the unreachable PEs, which are absent.
    pub tree: Tree,
    /// The orphans with new parents, in index order.
    pub moves: Vec<Move>,
    /// PEs that have not failed but that no remaining ancestor can reach, in index order.
    pub stranded: Vec<PeId>,
}

/// An orphan with a new parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub pe: PeId,
    /// The failed or unreachable parent.
    pub from: PeId,
    pub to: PeId,
}

impl Tree {
    /// Returns the tree without these PEs. An orphan, with its subtree, moves to its nearest
    /// remaining ancestor that can reach it, by `can_reach(orphan, ancestor)`. An orphan without
    /// such an ancestor is unreachable and cannot be a parent; its children are moved separately,
    /// since an ancestor may reach them.
    ///
    /// # Panics
    ///
    /// Panics if the root is among the failed PEs.
    pub fn without(&self, dead: &[PeId], can_reach: impl Fn(PeId, PeId) -> bool) -> Repair {
        let has_root = !dead.contains(&self.root);
        assert!(has_root, "there is no tree without its root");
        let mut parents = vec![None; self.len()];
        let mut is_in = vec![false; self.len()];
        is_in[self.root.index()] = true;
        let mut is_dead = vec![false; self.len()];
        for pe in dead {
            is_dead[pe.index()] = true;
        }
        let mut moves = Vec::new();
        let mut stranded = Vec::new();
        // Parents come before their children, so the state of each ancestor is known.
        for &pe in &self.top_down()[1..] {
            let Some(parent) = self.parent(pe).filter(|_| !is_dead[pe.index()]) else {
                continue;
            };
            let ancestors = self.up_from(parent);
            let mut living = ancestors.filter(|ancestor| is_in[ancestor.index()]);
            match living.find(|&ancestor| ancestor == parent || can_reach(pe, ancestor)) {
                Some(to) => {
                    parents[pe.index()] = Some(to);
                    is_in[pe.index()] = true;
                    if to != parent {
                        let from = parent;
                        moves.push(Move { pe, from, to });
                    }
                }
                None => stranded.push(pe),
            }
        }
        moves.sort_unstable_by_key(|moved| moved.pe);
        stranded.sort_unstable();
        Repair {
            tree: Tree::of_checked(self.root, parents),
            moves,
            stranded,
        }
    }
}

impl Tree {
    /// Returns the tree with another of its PEs as root: all PEs keep their numbers, and the edges
    /// between the old and the new root are reversed.
    pub fn rerooted(&self, root: PeId) -> Tree {
        let mut parents = self.parents.clone();
        parents[root.index()] = None;
        for child in self.turned(root) {
            if let Some(parent) = self.parent(child) {
                parents[parent.index()] = Some(child);
            }
        }
        Tree::of_checked(root, parents)
    }

    /// Returns the lower ends of the edges that are reversed when `root` becomes the root: `root`
    /// and its ancestors below the present root.
    pub fn turned(&self, root: PeId) -> impl Iterator<Item = PeId> + use<'_> {
        self.up_from(root).filter(|pe| *pe != self.root)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tree::tests::{ids, spec, spec as tree};
    use crate::tree::{TreeError, TreeErrors};

    fn moved(pe: u32, from: u32, to: u32) -> Move {
        let [pe, from, to] = [pe, from, to].map(PeId);
        Move { pe, from, to }
    }

    #[test]
    fn orphans_move_to_the_nearest_living_ancestor() {
        let repair = tree("kary:2:8").without(&ids([1, 3]), |_, _| true);
        // P3's child P7 is below P1, which has failed as well.
        assert_eq!(repair.moves, [moved(4, 1, 0), moved(7, 3, 0)]);
        assert_eq!(repair.stranded, []);
        let tree = repair.tree;
        assert_eq!((tree.len(), tree.count()), (8, 6));
        assert!(tree.pes().eq(ids([0, 2, 4, 5, 6, 7])));
        assert!(tree.absent().eq(ids([1, 3])));
        assert_eq!(tree.children(PeId::ROOT), ids([2, 4, 7]));
        assert_eq!(tree.parent(PeId(3)), None);
        assert_eq!(tree.children(PeId(3)), []);
        assert_eq!(tree.child_toward(PeId::ROOT, PeId(3)), None);
        assert_eq!(tree.subtree_sums(|_| 1), [6, 0, 3, 0, 1, 1, 1, 1]);
        assert_eq!(
            format!("{tree:?}"),
            "Tree rooted at P0, parents [none, absent, 0, absent, 0, 2, 2, 0]"
        );
    }

    #[test]
    fn who_cannot_be_reached_is_stranded_and_its_children_look_for_themselves() {
        // P4 can be reached from P0, but its parent P3 cannot.
        let only_p4 = |pe: PeId, ancestor: PeId| (pe, ancestor) == (PeId(4), PeId::ROOT);
        let repair = tree("path:6").without(&ids([2]), only_p4);
        assert_eq!(repair.stranded, ids([3]));
        assert_eq!(repair.moves, [moved(4, 3, 0)]);
        assert!(repair.tree.pes().eq(ids([0, 1, 4, 5])));
        assert!(!repair.tree.is_path(), "P0 has two children now");
        let nobody = tree("path:4").without(&ids([1]), |_, _| false);
        assert_eq!(nobody.stranded, ids([2, 3]));
        assert_eq!(nobody.tree.count(), 1);
    }

    #[test]
    fn a_repaired_tree_is_repaired_again() {
        let first = tree("path:5").without(&ids([2]), |_, _| true).tree;
        assert!(first.is_path());
        let second = first.without(&ids([2, 3]), |_, _| true);
        assert_eq!(second.moves, [moved(4, 3, 1)]);
        assert!(second.tree.is_path());
    }

    #[test]
    fn nobody_is_below_the_absent() {
        let parents = [None, Some(PeId(0)), None, Some(PeId(2))];
        let TreeErrors(faults) = Tree::with_absent(PeId::ROOT, parents.to_vec()).unwrap_err();
        let (pe, parent) = (PeId(3), PeId(2));
        assert_eq!(faults, [TreeError::AbsentParent { pe, parent }]);
        assert_eq!(faults[0].to_string(), "P3: parent P2 is absent");
    }

    proptest! {
        #[test]
        fn each_pe_is_dead_stranded_or_below_its_nearest_ancestor(
            len in 1u64..40, seed in any::<u64>(), share in 0u64..100,
        ) {
            let tree = tree(&format!("random:{len}:{seed}"));
            let mut random = crate::seeded::SplitMix64::new(seed);
            let dead: Vec<PeId> = tree.pes().skip(1).filter(|_| random.below(100) < share).collect();
            let reach = |pe: PeId, to: PeId| !(pe.0 ^ to.0 ^ seed as u32).is_multiple_of(3);
            let repair = tree.without(&dead, reach);
            for pe in tree.pes().skip(1) {
                let fates = [
                    dead.contains(&pe),
                    repair.stranded.contains(&pe),
                    repair.tree.contains(pe),
                ];
                prop_assert_eq!(fates.iter().filter(|fate| **fate).count(), 1, "{}", pe);
                let is_reached = |above: PeId| tree.parent(pe) == Some(above) || reach(pe, above);
                let mut above = tree.up_from(pe).skip(1);
                let above = above.find(|&above| repair.tree.contains(above) && is_reached(above));
                if !dead.contains(&pe) {
                    prop_assert_eq!(repair.tree.parent(pe), above);
                }
                let moved = repair.moves.iter().any(|moved| moved.pe == pe);
                let has_moved = fates[2] && repair.tree.parent(pe) != tree.parent(pe);
                prop_assert_eq!(moved, has_moved);
            }
        }
    }

    #[test]
    fn from_another_pe_the_edges_are_the_same() {
        let tree = spec("kary:2:5");
        let edges = |tree: &Tree| {
            let edges = tree.edges().map(|[a, b]| [a.min(b), a.max(b)]);
            let mut edges: Vec<_> = edges.collect();
            edges.sort_unstable();
            edges
        };
        for root in tree.pes() {
            let other = tree.rerooted(root);
            assert_eq!((other.root(), other.parent(root)), (root, None));
            assert_eq!(other.count(), tree.count());
            assert_eq!(edges(&other), edges(&tree), "from {root}");
            assert_eq!(other.rerooted(PeId::ROOT), tree, "and back from {root}");
        }
        let deepest = tree.rerooted(PeId(4));
        assert_eq!(deepest.depth(PeId(2)), 3);
        assert_eq!(deepest.children(PeId(1)), [PeId(0), PeId(3)]);
    }
}
