//! The rooted tree on P0..Pn, and the arithmetic on it.
//!
//! P0 is the root of every tree that somebody describes; seen from another PE
//! ([`Tree::rerooted`]), the same edges are a tree whose root is that PE.
//!
//! A [`Tree`] is checked once, when it is made, and never changes: whoever holds
//! one need not doubt it. What lives here is who is whose parent and child, and
//! what follows from that alone. Messages, lengths and steps of a schedule do
//! not, and nothing here reads a file. Nothing recurses: a path of a million
//! PEs is a tree like any other.
//!
//! A tree can lack PEs: one that was repaired around the dead (see [`Repair`]). Ids stay
//! what they are, since P4's message is `p4` whoever died, so "how many PEs are there"
//! ([`Tree::count`]) and "how large is an array with one element per PE"
//! ([`Tree::len`]) are two questions.

mod broadcast;
mod fault;
mod repair;
mod reroot;
mod shape;

pub use broadcast::TokenBroadcast;
pub use fault::{TreeFault, TreeFaults};
pub use repair::{Move, Repair};
pub use shape::{TreeSpec, TreeSpecError};

use std::sync::OnceLock;

use crate::PeId;

/// The most PEs that a tree may have.
///
/// It bounds what a wrong number on a command line or a hostile tree message
/// can make us reserve: a tree costs 24 bytes for each PE, so 24 MiB at most.
/// It leaves room for a million, which is what the simulator is asked for; a
/// real cluster stays far below.
pub const MAX_PES: usize = 1 << 20;

/// A tree on P0..Pn.
///
/// Methods that take a [`PeId`] panic if the tree does not have that PE: ids
/// that come from outside are checked where they come in.
#[derive(Clone)]
pub struct Tree {
    root: PeId,
    /// By PE index; `None` for the root, and for who is absent.
    parents: Vec<Option<PeId>>,
    /// In index order.
    present: Vec<PeId>,
    depths: Vec<u32>,
    /// The children of all PEs, P0's first; `first_child[i]..first_child[i + 1]`
    /// are those of P_i.
    children: Vec<PeId>,
    first_child: Vec<u32>,
    top_down: Vec<PeId>,
    /// Worked out when first asked for; every PE of a simulation asks.
    token_broadcast: OnceLock<TokenBroadcast>,
}

impl Tree {
    /// Makes a tree of `parents[i]`, the parent of P_i; only `parents[0]` is
    /// `None`.
    ///
    /// # Errors
    ///
    /// All that is wrong with it, at once.
    pub fn from_parents(parents: Vec<Option<PeId>>) -> Result<Tree, TreeFaults> {
        fault::check(PeId::ROOT, &parents, false)?;
        Ok(Tree::of_checked(PeId::ROOT, parents))
    }

    /// A tree with any PE as its root, and that may lack PEs: those other than the root whose
    /// parent is `None` are absent.
    ///
    /// # Errors
    ///
    /// All that is wrong with it, at once.
    pub fn with_absent(root: PeId, parents: Vec<Option<PeId>>) -> Result<Tree, TreeFaults> {
        fault::check(root, &parents, true)?;
        Ok(Tree::of_checked(root, parents))
    }

    fn of_checked(root: PeId, parents: Vec<Option<PeId>>) -> Tree {
        let len = parents.len();
        let is_present = |pe: &PeId| *pe == root || parents[pe.index()].is_some();
        let present: Vec<PeId> = pes(len).filter(is_present).collect();
        // Counting sort by parent; taking the PEs by index leaves each PE's
        // children in index order.
        let mut first_child = vec![0u32; len + 1];
        for parent in parents.iter().flatten() {
            first_child[parent.index() + 1] += 1;
        }
        for i in 0..len {
            first_child[i + 1] += first_child[i];
        }
        let mut next_place = first_child.clone();
        let mut children = vec![root; present.len() - 1];
        for (pe, parent) in pes(len).zip(&parents) {
            if let Some(parent) = parent {
                let place = &mut next_place[parent.index()];
                children[*place as usize] = pe;
                *place += 1;
            }
        }

        let mut tree = Tree {
            root,
            depths: vec![0; len],
            top_down: Vec::with_capacity(present.len()),
            parents,
            present,
            children,
            first_child,
            token_broadcast: OnceLock::new(),
        };
        tree.top_down.push(root);
        let mut done = 0;
        while let Some(&pe) = tree.top_down.get(done) {
            for place in tree.child_places(pe) {
                let child = tree.children[place];
                tree.depths[child.index()] = tree.depths[pe.index()] + 1;
                tree.top_down.push(child);
            }
            done += 1;
        }
        tree
    }

    /// The PE that has no parent.
    pub fn root(&self) -> PeId {
        self.root
    }

    /// The elements of an array that has one for each PE, those that are absent included:
    /// at least 1, at most [`MAX_PES`].
    #[allow(clippy::len_without_is_empty)] // It never is.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// How many PEs there are, the root included: [`Tree::len`] if none is absent.
    pub fn count(&self) -> usize {
        self.present.len()
    }

    /// Those of P0, P1, ... Pn that there are.
    pub fn pes(
        &self,
    ) -> impl ExactSizeIterator<Item = PeId> + DoubleEndedIterator + Clone + use<'_> {
        self.present.iter().copied()
    }

    /// Those of them that have a parent.
    pub fn below_root(&self) -> impl DoubleEndedIterator<Item = PeId> + Clone + use<'_> {
        self.pes().filter(|pe| *pe != self.root)
    }

    /// P0, P1, ... Pn, the absent ones too: to make arrays with one element per PE.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = PeId> + DoubleEndedIterator + use<> {
        pes(self.len())
    }

    /// Those that there are not.
    pub fn absent(&self) -> impl Iterator<Item = PeId> + use<'_> {
        self.ids().filter(|&pe| !self.contains(pe))
    }

    /// Whether the tree has such a PE: for ids that come from outside.
    pub fn contains(&self, pe: PeId) -> bool {
        pe == self.root || self.parents.get(pe.index()).is_some_and(Option::is_some)
    }

    /// The parent; `None` for the root, and for who is absent.
    pub fn parent(&self, pe: PeId) -> Option<PeId> {
        self.parents[pe.index()]
    }

    /// The children, in index order.
    pub fn children(&self, pe: PeId) -> &[PeId] {
        &self.children[self.child_places(pe)]
    }

    /// The edges between the root and the PE; 0 for who is absent.
    pub fn depth(&self, pe: PeId) -> u32 {
        self.depths[pe.index()]
    }

    /// Whether no PE has more than one child. Its PEs may be numbered in any
    /// order along the path; a single PE is a path.
    pub fn is_path(&self) -> bool {
        self.first_child.windows(2).all(|w| w[1] - w[0] <= 1)
    }

    /// All PEs, level by level, so that parents stand before their children;
    /// reversed, children stand before their parents.
    pub fn top_down(&self) -> &[PeId] {
        &self.top_down
    }

    /// The child of `from` whose subtree holds `to`; `None` if `to` is not below
    /// `from`. Takes as many steps as there are edges between them, at most
    /// `to`'s depth.
    pub fn child_toward(&self, from: PeId, to: PeId) -> Option<PeId> {
        let depth = self.depth(from) + 1;
        let mut pe = to;
        while self.depth(pe) > depth {
            pe = self.parent(pe)?;
        }
        (self.parent(pe) == Some(from)).then_some(pe)
    }

    /// For each PE, by index, the sum of `per_pe` over its subtree, the PE
    /// itself included; 0 for who is absent. A sum that `u64` cannot hold stays at its
    /// greatest value.
    pub fn subtree_sums(&self, per_pe: impl Fn(PeId) -> u64) -> Vec<u64> {
        let mut sums = vec![0; self.len()];
        for pe in self.pes() {
            sums[pe.index()] = per_pe(pe);
        }
        for &pe in self.top_down.iter().rev() {
            if let Some(parent) = self.parent(pe) {
                sums[parent.index()] = sums[parent.index()].saturating_add(sums[pe.index()]);
            }
        }
        sums
    }

    /// How a token spreads fastest over the tree.
    pub fn token_broadcast(&self) -> &TokenBroadcast {
        self.token_broadcast
            .get_or_init(|| TokenBroadcast::of(self))
    }

    /// Where the PE's children stand among those of all.
    fn child_places(&self, pe: PeId) -> std::ops::Range<usize> {
        self.first_child[pe.index()] as usize..self.first_child[pe.index() + 1] as usize
    }
}

/// All else follows from these.
impl PartialEq for Tree {
    fn eq(&self, other: &Tree) -> bool {
        self.root == other.root && self.parents == other.parents
    }
}

impl Eq for Tree {}

/// Not the arrays that follow from the parents: a failed assertion prints this.
impl std::fmt::Debug for Tree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tree rooted at {}, parents ", self.root)?;
        let mut list = f.debug_list();
        for (pe, parent) in pes(self.len()).zip(&self.parents) {
            match parent {
                Some(parent) => list.entry(&parent.0),
                None if pe == self.root => list.entry(&format_args!("none")),
                None => list.entry(&format_args!("absent")),
            };
        }
        list.finish()
    }
}

/// P0 and so on, `len` of them. [`MAX_PES`] keeps the indices in 32 bits.
fn pes(len: usize) -> impl ExactSizeIterator<Item = PeId> + DoubleEndedIterator + use<> {
    (0..len).map(|i| PeId(i as u32))
}

#[cfg(test)]
mod tests;
