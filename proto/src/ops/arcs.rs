//! The arcs of a tree, and which of them cross in a step where a PE has one port to send and one to
//! receive.

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

/// The arcs that cross in a step by PEs of one port to send and one to receive: of those that have a
/// flit to send, by increasing key, each that finds both ports free.
///
/// Nothing is sorted for it, as PEs with many neighbours have many keys and send one flit. Each
/// sender asks for its first arc, each receiver keeps the first that it is asked for, and who is
/// refused asks for its next one: deferred acceptance (Gale, Shapley; 1962), which comes to the same
/// where all go by the same keys.
#[derive(Debug)]
pub(super) struct Ports<K> {
    /// By receiver, the arc that it keeps.
    accepted: Vec<Option<(K, usize)>>,
    /// Senders that are yet to ask, and for an arc behind which one.
    asking: Vec<(PeId, Option<K>)>,
}

impl<K: Copy + Ord> Ports<K> {
    /// Those of so many PEs.
    pub(super) fn of(pes: usize) -> Ports<K> {
        Ports {
            accepted: vec![None; pes],
            asking: Vec::new(),
        }
    }

    /// The arcs that cross; arcs with nothing to send have no key, and no two others the same.
    pub(super) fn take(
        &mut self,
        arcs: &Arcs,
        senders: impl Iterator<Item = PeId>,
        key: impl Fn(usize) -> Option<K>,
    ) -> Vec<usize> {
        let mut asked = Vec::new();
        self.asking.extend(senders.map(|sender| (sender, None)));
        while let Some((sender, behind)) = self.asking.pop() {
            let keys = arcs.out_of(sender);
            let keys = keys.filter_map(|arc| Some((key(arc)?, arc)));
            let next = keys.filter(|(key, _)| behind.is_none_or(|behind| *key > behind));
            let Some(next) = next.min() else {
                continue;
            };
            let receiver = arcs.to(next.1);
            let accepted = &mut self.accepted[receiver.index()];
            let refused = match accepted {
                Some(first) if *first < next => Some(next),
                _ => accepted.replace(next),
            };
            match refused {
                Some((key, arc)) => self.asking.push((arcs.from(arc), Some(key))),
                None => asked.push(receiver),
            }
        }
        let accepted = asked
            .into_iter()
            .filter_map(|pe| self.accepted[pe.index()].take());
        accepted.map(|(_, arc)| arc).collect()
    }
}
