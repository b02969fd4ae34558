//! The rooted tree on P0..Pn, and computations on it.
//!
//! P0 is the root of every tree that a user describes; seen from another PE ([`Tree::rerooted`]),
//! the same edges form a tree whose root is that PE.
//!
//! A [`Tree`] is checked once, when it is created, and never changes, so its users need no further
//! checks. This module contains only parents, children and what follows from them; messages,
//! lengths and schedules are elsewhere, and nothing here reads a file. No function is recursive: a
//! path of a million PEs is a tree like any other.
//!
//! PEs may be absent from a tree that was repaired after failures (see [`Repair`]). Ids never
//! change, since P4's message stays `p4`. So the number of PEs ([`Tree::count`]) and the length of
//! an array with one element per PE ([`Tree::len`]) differ.

mod broadcast;
mod error;
mod repair;
mod shape;

pub use broadcast::TokenBroadcast;
pub use error::{TreeError, TreeErrors};
pub use repair::{Move, Repair};
pub use shape::{TreeSpec, TreeSpecError};

use std::sync::OnceLock;

use crate::PeId;

/// Maximum number of PEs of a tree.
///
/// It limits the memory that a wrong number on a command line or a hostile message can reserve: at
/// 24 bytes for each PE, a tree takes at most 24 MiB. A million PEs are enough for the simulator;
/// real clusters are far smaller.
pub const MAX_PES: usize = 1 << 20;

/// A tree on P0..Pn.
///
/// Methods that take a [`PeId`] panic if the tree does not have that PE: ids from outside are
/// checked where they are received.
#[derive(Clone)]
pub struct Tree {
    root: PeId,
    /// Parents by PE index; `None` for the root and for absent PEs.
    parents: Vec<Option<PeId>>,
    /// PEs that are present, in index order.
    present: Vec<PeId>,
    depths: Vec<u32>,
    /// Children of all PEs, P0's first; `first_child[i]..first_child[i + 1]` are those of P_i.
    children: Vec<PeId>,
    first_child: Vec<u32>,
    top_down: Vec<PeId>,
    /// Computed on first use, because every PE of a simulation needs it.
    token_broadcast: OnceLock<TokenBroadcast>,
}

impl Tree {
    /// Creates a tree from `parents[i]`, the parent of P_i; only `parents[0]` is `None`. Returns all
    /// faults of the list.
    pub fn from_parents(parents: Vec<Option<PeId>>) -> Result<Tree, TreeErrors> {
        error::check(PeId::ROOT, &parents, false)?;
        Ok(Tree::of_checked(PeId::ROOT, parents))
    }

    /// Creates a tree with any root, from which PEs may be absent: those other than the root whose
    /// parent is `None`. Returns all faults of the list.
    pub fn with_absent(root: PeId, parents: Vec<Option<PeId>>) -> Result<Tree, TreeErrors> {
        error::check(root, &parents, true)?;
        Ok(Tree::of_checked(root, parents))
    }

    fn of_checked(root: PeId, parents: Vec<Option<PeId>>) -> Tree {
        let len = parents.len();
        let is_present = |pe: &PeId| *pe == root || parents[pe.index()].is_some();
        let present: Vec<PeId> = pes(len).filter(is_present).collect();
        // Counting sort by parent; visiting the PEs by index leaves each PE's children in index
        // order.
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

    pub fn root(&self) -> PeId {
        self.root
    }

    /// Returns the length of an array with one element for each PE, including absent ones: at least
    /// 1, at most [`MAX_PES`].
    #[allow(clippy::len_without_is_empty)] // It never is.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Returns the number of PEs, including the root: [`Tree::len`] if none is absent.
    pub fn count(&self) -> usize {
        self.present.len()
    }

    /// Returns the PEs that are present, in index order.
    pub fn pes(
        &self,
    ) -> impl ExactSizeIterator<Item = PeId> + DoubleEndedIterator + Clone + use<'_> {
        self.present.iter().copied()
    }

    /// Returns the PEs that have a parent.
    pub fn below_root(&self) -> impl DoubleEndedIterator<Item = PeId> + Clone + use<'_> {
        self.pes().filter(|pe| *pe != self.root)
    }

    /// Returns the upper and the lower end of each edge, by lower end.
    pub fn edges(&self) -> impl Iterator<Item = [PeId; 2]> + use<'_> {
        self.pes().filter_map(|pe| Some([self.parent(pe)?, pe]))
    }

    /// Returns P0, P1, ... Pn, including absent PEs, for arrays with one element per PE.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = PeId> + DoubleEndedIterator + use<> {
        pes(self.len())
    }

    pub fn absent(&self) -> impl Iterator<Item = PeId> + use<'_> {
        self.ids().filter(|&pe| !self.contains(pe))
    }

    /// Returns whether the tree has this PE; for ids from outside.
    pub fn contains(&self, pe: PeId) -> bool {
        pe == self.root || self.parents.get(pe.index()).is_some_and(Option::is_some)
    }

    /// Returns the parent; `None` for the root and for absent PEs.
    pub fn parent(&self, pe: PeId) -> Option<PeId> {
        self.parents[pe.index()]
    }

    /// Returns the children in index order.
    pub fn children(&self, pe: PeId) -> &[PeId] {
        &self.children[self.child_places(pe)]
    }

    /// Returns the number of edges between the root and the PE; 0 for absent PEs.
    pub fn depth(&self, pe: PeId) -> u32 {
        self.depths[pe.index()]
    }

    /// Returns the greatest depth of a PE.
    pub fn height(&self) -> u32 {
        self.depths.iter().copied().max().unwrap_or(0)
    }

    /// Returns a PE and its ancestors, the root last.
    pub fn up_from(&self, pe: PeId) -> impl Iterator<Item = PeId> + Clone + use<'_> {
        std::iter::successors(Some(pe), |pe| self.parent(*pe))
    }

    /// Returns the PEs on the way from the root to a PE, both included.
    pub fn way_to(&self, pe: PeId) -> Vec<PeId> {
        let mut way: Vec<PeId> = self.up_from(pe).collect();
        way.reverse();
        way
    }

    /// Returns whether no PE has more than one child. The PEs may be numbered in any order along
    /// the path; a single PE is a path.
    pub fn is_path(&self) -> bool {
        self.first_child.windows(2).all(|w| w[1] - w[0] <= 1)
    }

    /// Returns all PEs level by level: parents come before their children, and in reverse order
    /// children before their parents.
    pub fn top_down(&self) -> &[PeId] {
        &self.top_down
    }

    /// Returns the child of `from` whose subtree contains `to`; `None` if `to` is not below `from`.
    /// The time is proportional to the number of edges between the two, at most the depth of `to`.
    pub fn child_toward(&self, from: PeId, to: PeId) -> Option<PeId> {
        let depth = self.depth(from) + 1;
        let mut pe = to;
        while self.depth(pe) > depth {
            pe = self.parent(pe)?;
        }
        (self.parent(pe) == Some(from)).then_some(pe)
    }

    /// Returns, for each PE by index, the sum of `per_pe` over its subtree including the PE itself;
    /// 0 for absent PEs. A sum that exceeds `u64` saturates.
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

    /// Returns the fastest broadcast of a token over the tree.
    pub fn token_broadcast(&self) -> &TokenBroadcast {
        self.token_broadcast
            .get_or_init(|| TokenBroadcast::of(self))
    }

    /// Returns the range of the PE's children in `children`.
    fn child_places(&self, pe: PeId) -> std::ops::Range<usize> {
        self.first_child[pe.index()] as usize..self.first_child[pe.index() + 1] as usize
    }
}

/// Everything else follows from these fields.
impl PartialEq for Tree {
    fn eq(&self, other: &Tree) -> bool {
        self.root == other.root && self.parents == other.parents
    }
}

impl Eq for Tree {}

/// Omits the derived arrays: a failed assertion prints this.
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

/// Returns `len` PEs from P0 on. [`MAX_PES`] keeps the indices in 32 bits.
fn pes(len: usize) -> impl ExactSizeIterator<Item = PeId> + DoubleEndedIterator + use<> {
    (0..len).map(|i| PeId(i as u32))
}

#[cfg(test)]
mod tests;
