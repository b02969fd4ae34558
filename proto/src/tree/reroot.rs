//! Another root for the edges of a tree.

use super::Tree;
use crate::PeId;

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
    use super::*;
    use crate::tree::tests::spec;

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
