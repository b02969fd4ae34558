//! The quickest way to bring a token from P0 to every PE, one neighbour a step.

use std::cmp::Reverse;

use crate::PeId;

use super::Tree;

/// Who passes the token on in which order, and when everybody gets it.
///
/// `b(leaf) = 0`; `b(i) = max over k of (k + b(k-th child))`, the children taken
/// by decreasing `b`, those with the same `b` by index. The k-th child gets the
/// token k steps after its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBroadcast {
    root: PeId,
    b: Vec<u64>,
    received: Vec<u64>,
    /// As in the tree, the children of all PEs, but each PE's in token order.
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

    /// The steps that the token needs below the PE once the PE has it.
    pub fn b(&self, pe: PeId) -> u64 {
        self.b[pe.index()]
    }

    /// The PE's children in the order in which they get the token.
    pub fn order(&self, pe: PeId) -> &[PeId] {
        let i = pe.index();
        &self.order[self.first_child[i] as usize..self.first_child[i + 1] as usize]
    }

    /// The step in which the PE gets the token; 0 for the root, who has it before the
    /// first step.
    pub fn received_step(&self, pe: PeId) -> u64 {
        self.received[pe.index()]
    }

    /// The step in which the last PE gets the token: B, which is the root's b.
    pub fn steps(&self) -> u64 {
        self.b(self.root)
    }
}
