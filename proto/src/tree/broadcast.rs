//! The fastest broadcast of a token from P0 to all PEs, one neighbour per step.

use std::cmp::Reverse;

use crate::PeId;

use super::Tree;

/// The order in which PEs pass the token on, and the step in which each receives it.
///
/// `b(leaf) = 0`; `b(i) = max over k of (k + b(k-th child))`, with the children in order of
/// decreasing `b`, and of index if equal. The k-th child receives the token k steps after its
/// parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBroadcast {
    root: PeId,
    b: Vec<u64>,
    received: Vec<u64>,
    /// The children of all PEs as in the tree, but each PE's children in token order.
    order: Vec<PeId>,
    first_child: Vec<u32>,
}

impl TokenBroadcast {
    /// Plans the broadcast for `tree`.
    pub fn of(tree: &Tree) -> Self {
        let mut b = vec![0; tree.len()];
        let mut order = tree.children.clone();
        for &pe in tree.top_down().iter().rev() {
            let children = &mut order[tree.child_places(pe)];
            children.sort_unstable_by_key(|&child| (Reverse(b[child.index()]), child));
            let steps = (1..).zip(&*children).map(|(k, child)| k + b[child.index()]);
            b[pe.index()] = steps.max().unwrap_or(0);
        }
        let mut received = vec![0; tree.len()];
        for &pe in tree.top_down() {
            for (k, child) in (1..).zip(&order[tree.child_places(pe)]) {
                received[child.index()] = received[pe.index()] + k;
            }
        }
        Self {
            root: tree.root(),
            b,
            received,
            order,
            first_child: tree.first_child.clone(),
        }
    }

    /// Returns the number of steps that the token needs below the PE after the PE has received it.
    pub fn b(&self, pe: PeId) -> u64 {
        self.b[pe.index()]
    }

    /// Returns the PE's children in the order in which they receive the token.
    pub fn order(&self, pe: PeId) -> &[PeId] {
        let i = pe.index();
        &self.order[self.first_child[i] as usize..self.first_child[i + 1] as usize]
    }

    /// Returns the step in which the PE receives the token; 0 for the root, which has it before the
    /// first step.
    pub fn received_step(&self, pe: PeId) -> u64 {
        self.received[pe.index()]
    }

    /// Returns the step in which the last PE receives the token: B, which is the root's b.
    pub fn steps(&self) -> u64 {
        self.b(self.root)
    }
}
