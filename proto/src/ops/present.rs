//! A tree of those alone that are there, for planners that know of nobody absent.

use std::borrow::Cow;

use crate::{PeId, Tree};

/// Those who are there, and their tree by numbers of its own.
#[derive(Debug)]
pub(super) struct Present<'a> {
    tree: Cow<'a, Tree>,
    /// Who has each number.
    pes: Vec<PeId>,
}

impl Present<'_> {
    /// Of a tree that may lack some.
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
            // It is the same tree, so it is one.
            Err(_) => unreachable!("a tree without those that it lacks is a tree"),
        }
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// By number.
    pub(super) fn pes(&self) -> &[PeId] {
        &self.pes
    }

    /// Who has a number.
    pub(super) fn who(&self, number: PeId) -> PeId {
        self.pes[number.index()]
    }
}
