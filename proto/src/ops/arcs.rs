//! The arcs of a tree.

use crate::{PeId, Tree};

/// Each edge of a tree once in each direction, numbered by sender, then by receiver.
#[derive(Debug)]
pub(super) struct Arcs {
    /// Sender and receiver of each.
    ends: Vec<[PeId; 2]>,
    /// The arcs from P_i are `first[i]..first[i + 1]`.
    first: Vec<usize>,
}

impl Arcs {
    /// Those of a tree that nobody is absent from.
    pub(super) fn of(tree: &Tree) -> Arcs {
        let edges = tree.pes().filter_map(|pe| Some([tree.parent(pe)?, pe]));
        let both = edges.flat_map(|[parent, pe]| [[parent, pe], [pe, parent]]);
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

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Its sender.
    pub(super) fn from(&self, arc: usize) -> PeId {
        self.ends[arc][0]
    }

    /// Its receiver.
    pub(super) fn to(&self, arc: usize) -> PeId {
        self.ends[arc][1]
    }

    /// Sender and receiver.
    pub(super) fn ends(&self, arc: usize) -> [PeId; 2] {
        self.ends[arc]
    }

    /// All of them, so that an arc comes after those over which its sender gets what it passes on.
    pub(super) fn in_order_of_flow(&self, tree: &Tree) -> Vec<usize> {
        let up = tree.top_down().iter().rev();
        let up = up.filter_map(|pe| Some(self.between(*pe, tree.parent(*pe)?)));
        let down = tree.top_down().iter();
        let down = down.filter_map(|pe| Some(self.between(tree.parent(*pe)?, *pe)));
        up.chain(down).collect()
    }

    /// Those that a PE sends over, by receiver.
    pub(super) fn out_of(&self, pe: PeId) -> std::ops::Range<usize> {
        self.first[pe.index()]..self.first[pe.index() + 1]
    }

    /// The arc between two neighbours.
    pub(super) fn between(&self, from: PeId, to: PeId) -> usize {
        let out = self.out_of(from);
        let earlier = self.ends[out.clone()].partition_point(|[_, other]| *other < to);
        out.start + earlier
    }

    /// For each, the arc between the same two in the other direction.
    pub(super) fn reversed(&self) -> Vec<usize> {
        let reversed = self.ends.iter().map(|[from, to]| self.between(*to, *from));
        reversed.collect()
    }
}
