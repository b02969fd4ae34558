//! The arcs of a tree.

use flitcast_proto::{PeId, Tree};

/// The arcs of a tree, one for each direction of each edge, numbered by sender, then by receiver.
#[derive(Debug)]
pub(super) struct Arcs {
    /// Sender and receiver of each arc.
    pub(super) ends: Vec<[PeId; 2]>,
    /// The arcs from P_i are `first[i]..first[i + 1]`.
    first: Vec<usize>,
}

impl Arcs {
    /// Returns the arcs of a tree without absent PEs.
    pub(super) fn of(tree: &Tree) -> Arcs {
        let both = tree
            .edges()
            .flat_map(|[upper, lower]| [[upper, lower], [lower, upper]]);
        let mut ends: Vec<[PeId; 2]> = both.collect();
        ends.sort_unstable();
        let mut first = vec![0; tree.len() + 1];
        for [from, _] in &ends {
            first[from.index() + 1] += 1;
        }
        for pe in 0..tree.len() {
            first[pe + 1] += first[pe];
        }
        Arcs { ends, first }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn from(&self, arc: usize) -> PeId {
        self.ends[arc][0]
    }

    pub(super) fn to(&self, arc: usize) -> PeId {
        self.ends[arc][1]
    }

    /// Returns all arcs, each after those over which its sender receives what it forwards.
    pub(super) fn in_order_of_flow(&self, tree: &Tree) -> Vec<usize> {
        let up = tree.top_down().iter().rev();
        let up = up.filter_map(|pe| Some(self.between(*pe, tree.parent(*pe)?)));
        let down = tree.top_down().iter();
        let down = down.filter_map(|pe| Some(self.between(tree.parent(*pe)?, *pe)));
        up.chain(down).collect()
    }

    /// Returns the arcs over which a PE sends, by receiver.
    pub(super) fn out_of(&self, pe: PeId) -> std::ops::Range<usize> {
        self.first[pe.index()]..self.first[pe.index() + 1]
    }

    /// Returns the arc between two neighbours.
    pub(super) fn between(&self, from: PeId, to: PeId) -> usize {
        let out = self.out_of(from);
        let earlier = self.ends[out.clone()].partition_point(|[_, other]| *other < to);
        out.start + earlier
    }

    /// Returns for each arc the arc in the other direction.
    pub(super) fn reversed(&self) -> Vec<usize> {
        let reversed = self.ends.iter().map(|[from, to]| self.between(*to, *from));
        reversed.collect()
    }
}
