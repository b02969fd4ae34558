//! The tree without its absent PEs, for planners that require all PEs to be present.

use std::borrow::Cow;

use flitcast_proto::{PeId, Tree};

/// The present PEs, renumbered, and their tree.
#[derive(Debug)]
pub(super) struct Present<'a> {
    tree: Cow<'a, Tree>,
    pes: Vec<PeId>,
}

impl Present<'_> {
    /// Renumbers the present PEs of a tree.
    pub(super) fn of(tree: &Tree) -> Present<'_> {
        let pes: Vec<PeId> = tree.pes().collect();
        if pes.len() == tree.len() {
            let tree = Cow::Borrowed(tree);
            return Present { tree, pes };
        }
        let number = |pe: PeId| pes.binary_search(&pe).ok().map(|place| PeId(place as u32));
        let parents = pes.iter().map(|pe| tree.parent(*pe).and_then(number));
        let root = number(tree.root()).unwrap_or(PeId::ROOT);
        match Tree::with_absent(root, parents.collect()) {
            Ok(tree) => Present {
                tree: Cow::Owned(tree),
                pes,
            },
            // Absent PEs have no children.
            Err(_) => unreachable!("a tree without those that it lacks is a tree"),
        }
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(super) fn pes(&self) -> &[PeId] {
        &self.pes
    }

    pub(super) fn who(&self, number: PeId) -> PeId {
        self.pes[number.index()]
    }
}
