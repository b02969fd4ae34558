//! The same edges with another PE at the root.

use super::Tree;
use crate::PeId;

/// A tree whose root is another PE's place. Its P0 is that PE; the others keep their order.
#[derive(Clone, Debug)]
pub struct Rerooted {
    /// The tree, in which all PEs but those behind the root have other numbers than before.
    pub tree: Tree,
    root: PeId,
}

impl Rerooted {
    /// What a PE of this tree was called before.
    pub fn before(&self, pe: PeId) -> PeId {
        Rerooted::behind(self.root, pe)
    }

    /// The PE that has this number when `root` has 0 and the others keep their order.
    pub fn behind(root: PeId, pe: PeId) -> PeId {
        match pe {
            PeId::ROOT => root,
            _ if pe <= root => PeId(pe.0 - 1),
            _ => pe,
        }
    }
}

impl Tree {
    /// The tree as seen from `root`, which is one of its PEs. Nobody is absent.
    pub fn rerooted(&self, root: PeId) -> Rerooted {
        let now = |pe: PeId| match pe {
            _ if pe == root => PeId::ROOT,
            _ if pe < root => PeId(pe.0 + 1),
            _ => pe,
        };
        let mut parents = vec![None; self.len()];
        for pe in self.ids() {
            parents[now(pe).index()] = self.parent(pe).map(now);
        }
        // Between the old root and the new one, edges lead the other way.
        let mut pe = root;
        parents[0] = None;
        while let Some(parent) = self.parent(pe) {
            parents[now(parent).index()] = Some(now(pe));
            pe = parent;
        }
        Rerooted {
            tree: Tree::of_checked(parents),
            root,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_another_pe_the_edges_are_the_same() {
        let parents = [None, Some(0), Some(0), Some(1), Some(1)].map(|it| it.map(PeId));
        let tree = Tree::from_parents(parents.to_vec()).unwrap();
        for root in tree.pes() {
            let other = tree.rerooted(root);
            assert_eq!(other.before(PeId::ROOT), root);
            let mut names: Vec<PeId> = other.tree.ids().map(|pe| other.before(pe)).collect();
            assert!(names[1..].is_sorted());
            names.sort_unstable();
            assert_eq!(names, tree.ids().collect::<Vec<_>>());
            let edge = |[a, b]: [PeId; 2]| [a.min(b), a.max(b)];
            let before = tree
                .pes()
                .filter_map(|pe| Some(edge([tree.parent(pe)?, pe])));
            let mut before: Vec<_> = before.collect();
            let now = other.tree.pes().filter_map(|pe| {
                let parent = other.tree.parent(pe)?;
                Some(edge([parent, pe].map(|pe| other.before(pe))))
            });
            let mut now: Vec<_> = now.collect();
            before.sort_unstable();
            now.sort_unstable();
            assert_eq!(now, before, "from {root}");
        }
    }
}
