//! The arcs of a tree that cross in a step if a PE has one port to send and one to receive.

use flitcast_proto::{PeId, Tree};

use super::arcs::Arcs;

/// The arcs that cross in a step by PEs with one port to send and one to receive: of the arcs with
/// a flit to send, by increasing key, then by number, each that finds both ports free.
///
/// No arcs are sorted and few keys are computed, because PEs with many neighbours have many arcs
/// and send one flit. An arc that is first at both of its ports crosses in any case. The search
/// goes from a port over its first arc to the port at the other end, until an arc leads back: a
/// chain of nearest neighbours (Benzécri; 1982).
///
/// The first arc at a port is the winner of a tournament among the arcs from or to the PE's
/// children, which is updated only for arcs whose rank has changed, or the one arc to or from its
/// parent. A step therefore costs the number of its crossings times the logarithm of the
/// neighbours, for any number of waiting arcs.
///
/// Ranks only order the arcs at one port, so that they change less often than keys. If no single
/// rank gives the order of the keys, there are `N`, and the first arc by key is the first by one of
/// them.
#[derive(Debug)]
pub(super) struct Ports<R, const N: usize> {
    /// For each arc, the ports at its ends: the parent's, then the child's.
    ends: Vec<[usize; 2]>,
    /// For each arc, its position in the tournaments of the parent's port.
    places: Vec<usize>,
    /// For each port, the arc to or from the PE's parent.
    above: Vec<Option<usize>>,
    /// For each port, a tournament by each rank.
    tournaments: Vec<[Tournament<R>; N]>,
    /// All ports whose tournaments contain an arc, and some others.
    open: Vec<usize>,
    is_open: Vec<bool>,
    is_taken: Vec<bool>,
}

fn sending(pe: PeId) -> usize {
    2 * pe.index()
}

fn receiving(pe: PeId) -> usize {
    2 * pe.index() + 1
}

impl<R: Copy + Ord, const N: usize> Ports<R, N> {
    /// Creates the ports of the PEs of a tree; no arc has a flit to send.
    pub(super) fn of(tree: &Tree, arcs: &Arcs) -> Ports<R, N> {
        let ports = 2 * tree.len();
        let mut ends = vec![[0; 2]; arcs.len()];
        let mut places = vec![0; arcs.len()];
        let mut above = vec![None; ports];
        let mut below = vec![0; ports];
        for [parent, pe] in tree.edges() {
            let down = (arcs.between(parent, pe), sending(parent), receiving(pe));
            let up = (arcs.between(pe, parent), receiving(parent), sending(pe));
            for (arc, upper, lower) in [down, up] {
                ends[arc] = [upper, lower];
                above[lower] = Some(arc);
                places[arc] = below[upper];
                below[upper] += 1;
            }
        }
        let tournaments = below
            .into_iter()
            .map(|places| [(); N].map(|()| Tournament::among(places)));
        Ports {
            ends,
            places,
            above,
            tournaments: tournaments.collect(),
            open: Vec::new(),
            is_open: vec![false; ports],
            is_taken: vec![false; ports],
        }
    }

    /// Returns the arc from a PE to its parent.
    pub(super) fn up_from(&self, pe: PeId) -> Option<usize> {
        self.above[sending(pe)]
    }

    /// Returns the arc to a PE from its parent.
    pub(super) fn down_to(&self, pe: PeId) -> Option<usize> {
        self.above[receiving(pe)]
    }

    /// Sets the ranks of an arc, or `None` if it has nothing to send.
    pub(super) fn rank(&mut self, arc: usize, ranks: Option<[R; N]>) {
        let [upper, _] = self.ends[arc];
        let entries = match ranks {
            Some(ranks) => ranks.map(|rank| Some((rank, arc))),
            None => [None; N],
        };
        self.enter(arc, entries);
        if ranks.is_some() && !self.is_open[upper] {
            self.is_open[upper] = true;
            self.open.push(upper);
        }
    }

    /// Sets the entries of an arc in the tournaments and returns the previous ones.
    fn enter(&mut self, arc: usize, entries: [Entry<R>; N]) -> [Entry<R>; N] {
        let mut entries = entries;
        let tournaments = &mut self.tournaments[self.ends[arc][0]];
        for (tournament, entry) in tournaments.iter_mut().zip(&mut entries) {
            *entry = tournament.enter(self.places[arc], *entry);
        }
        entries
    }

    /// Returns the arcs that cross. `key` returns `None` for arcs with nothing to send.
    pub(super) fn take<K: Ord>(&mut self, key: impl Fn(usize) -> Option<K>) -> Vec<usize> {
        let (tournaments, is_open) = (&self.tournaments, &mut self.is_open);
        self.open.retain(|port| {
            let first = &tournaments[*port][0];
            is_open[*port] = first.winner().is_some();
            is_open[*port]
        });
        let (mut crossing, mut aside, mut chain) = (Vec::new(), Vec::new(), Vec::new());
        for start in 0..self.open.len() {
            chain.push(self.open[start]);
            while let Some(port) = chain.pop() {
                let Some(arc) = self.first_at(port, &key) else {
                    continue;
                };
                let [upper, lower] = self.ends[arc];
                let other = if port == upper { lower } else { upper };
                if chain.last() != Some(&other) {
                    chain.extend([port, other]);
                    continue;
                }
                chain.pop();
                crossing.push(arc);
                for port in [upper, lower] {
                    self.is_taken[port] = true;
                }
                // The crossing arc itself is the one above the lower port.
                if let Some(arc) = self.above[upper] {
                    aside.push((arc, self.enter(arc, [None; N])));
                }
            }
        }
        for (arc, entries) in aside {
            self.enter(arc, entries);
        }
        for port in crossing.iter().flat_map(|arc| self.ends[*arc]) {
            self.is_taken[port] = false;
        }
        crossing
    }

    /// Returns the first arc at a port with a free port at its other end, or `None` if the port
    /// itself is taken.
    fn first_at<K: Ord>(&self, port: usize, key: impl Fn(usize) -> Option<K>) -> Option<usize> {
        if self.is_taken[port] {
            return None;
        }
        let above = self.above[port].filter(|arc| !self.is_taken[self.ends[*arc][0]]);
        let below = self.tournaments[port].iter().filter_map(Tournament::winner);
        let keys = below.chain(above).filter_map(|arc| Some((key(arc)?, arc)));
        keys.min().map(|(_, arc)| arc)
    }
}

/// A rank and the arc that has it.
type Entry<R> = Option<(R, usize)>;

/// The arc with the lowest rank of several.
#[derive(Debug)]
struct Tournament<R> {
    /// A heap-shaped tree: the second half are the entries; before it, element `i` is the lesser of
    /// elements `2 * i` and `2 * i + 1`.
    winners: Vec<Entry<R>>,
}

impl<R: Copy + Ord> Tournament<R> {
    /// Creates a tournament of `places` empty entries.
    fn among(places: usize) -> Tournament<R> {
        Tournament {
            winners: vec![None; 2 * places],
        }
    }

    /// Returns the arc with the lowest rank.
    fn winner(&self) -> Option<usize> {
        let winner = self.winners.get(1).copied().flatten();
        winner.map(|(_, arc)| arc)
    }

    /// Sets the entry at a position and returns the previous one.
    fn enter(&mut self, place: usize, entry: Entry<R>) -> Entry<R> {
        let mut at = self.winners.len() / 2 + place;
        let before = std::mem::replace(&mut self.winners[at], entry);
        while at > 1 {
            at /= 2;
            let pair = [self.winners[2 * at], self.winners[2 * at + 1]];
            let winner = pair.into_iter().flatten().min();
            if self.winners[at] == winner {
                break;
            }
            self.winners[at] = winner;
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use flitcast_proto::seeded::SplitMix64;

    use super::*;

    /// Returns the arcs by increasing key, each that finds both ports free.
    fn one_by_one(arcs: &Arcs, keys: &[Option<u64>]) -> Vec<usize> {
        let mut waiting: Vec<usize> = (0..arcs.len()).filter(|arc| keys[*arc].is_some()).collect();
        waiting.sort_by_key(|arc| (keys[*arc], *arc));
        let (mut senders, mut receivers) = (BTreeSet::new(), BTreeSet::new());
        waiting.retain(|arc| {
            let [from, to] = arcs.ends[*arc];
            let are_free = !senders.contains(&from) && !receivers.contains(&to);
            are_free && senders.insert(from) && receivers.insert(to)
        });
        waiting.sort_unstable();
        waiting
    }

    /// On bushy trees; few keys change from one step to the next.
    #[test]
    fn the_first_arcs_with_both_ports_free_are_crossed() {
        let mut random = SplitMix64::new(1);
        for pes in 2..60u32 {
            let hubs = 1 + random.below(4) as u32;
            let parents = (1..pes).map(|pe| Some(PeId(random.below(hubs.min(pe).into()) as u32)));
            let parents = std::iter::once(None).chain(parents).collect();
            let tree = Tree::from_parents(parents).expect("parents stand before their children");
            let arcs = Arcs::of(&tree);
            let mut ports: Ports<u64, 1> = Ports::of(&tree, &arcs);
            let mut keys = vec![None; arcs.len()];
            for _ in 0..40 {
                for _ in 0..random.below(6) {
                    let arc = random.below(arcs.len() as u64) as usize;
                    keys[arc] = (random.below(4) > 0).then(|| random.below(9));
                    ports.rank(arc, keys[arc].map(|key| [key]));
                }
                let mut crossing = ports.take(|arc| keys[arc]);
                crossing.sort_unstable();
                assert_eq!(crossing, one_by_one(&arcs, &keys), "{pes} PEs: {keys:?}");
            }
        }
    }
}
