//! Which arcs of a tree cross in a step where a PE has one port to send and one to receive.

use super::arcs::Arcs;
use crate::{PeId, Tree};

/// The arcs that cross in a step by PEs of one port to send and one to receive: of those that have a
/// flit to send, by increasing key, then by number, each that finds both ports free.
///
/// Nothing is sorted for it and few keys are looked at, as PEs with many neighbours have many arcs
/// and send one flit. An arc that comes first at both of its ports crosses, whatever comes first
/// elsewhere. It is found by going on from a port over the arc that is first there, to the port at
/// its other end, until an arc leads back: a chain of nearest neighbours (Benzécri; 1982).
///
/// What comes first at a port is known from a tournament among the arcs from or to the PE's
/// children, which is held again only along the way of an arc whose rank has changed, and from the
/// one arc to or from its parent. So a step costs as much as crosses in it, times the logarithm of
/// the neighbours, however many arcs wait.
///
/// Ranks need only order the arcs at one port, so that they do not change with all that keys do.
/// Where no one rank comes to the order of the keys there are `N`, and what is first by key is
/// first by one of them.
#[derive(Debug)]
pub(super) struct Ports<R, const N: usize> {
    /// By arc, the ports at its ends: the parent's, then the child's.
    ends: Vec<[usize; 2]>,
    /// By arc, its place in the tournaments of the parent's port.
    places: Vec<usize>,
    /// By port, the arc to or from the PE's parent.
    above: Vec<Option<usize>>,
    /// By port, a tournament by each rank.
    tournaments: Vec<[Tournament<R>; N]>,
    /// All ports in whose tournaments there is an arc, and some others.
    open: Vec<usize>,
    is_open: Vec<bool>,
    is_taken: Vec<bool>,
}

/// The port of a PE that sends.
fn sending(pe: PeId) -> usize {
    2 * pe.index()
}

/// The port of a PE that receives.
fn receiving(pe: PeId) -> usize {
    2 * pe.index() + 1
}

impl<R: Copy + Ord, const N: usize> Ports<R, N> {
    /// Those of the PEs of a tree; nothing is to be sent yet.
    pub(super) fn of(tree: &Tree, arcs: &Arcs) -> Ports<R, N> {
        let ports = 2 * tree.len();
        let mut ends = vec![[0; 2]; arcs.len()];
        let mut places = vec![0; arcs.len()];
        let mut above = vec![None; ports];
        let mut below = vec![0; ports];
        for pe in tree.pes() {
            let Some(parent) = tree.parent(pe) else {
                continue;
            };
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

    /// The arc from a PE to its parent.
    pub(super) fn up_from(&self, pe: PeId) -> Option<usize> {
        self.above[sending(pe)]
    }

    /// The arc to a PE from its parent.
    pub(super) fn down_to(&self, pe: PeId) -> Option<usize> {
        self.above[receiving(pe)]
    }

    /// An arc has these ranks from now on; none, if it has nothing to send.
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

    /// In the tournaments an arc stands with this; what it stood with before.
    fn enter(&mut self, arc: usize, entries: [Entry<R>; N]) -> [Entry<R>; N] {
        let mut entries = entries;
        let tournaments = &mut self.tournaments[self.ends[arc][0]];
        for (tournament, entry) in tournaments.iter_mut().zip(&mut entries) {
            *entry = tournament.enter(self.places[arc], *entry);
        }
        entries
    }

    /// The arcs that cross; those with nothing to send have no key.
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
                // The arc that crosses is itself the one above the lower port.
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

    /// The first arc at a port with a free port at its other end; `None` if it is taken itself.
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

/// Which of some arcs has the lowest rank.
#[derive(Debug)]
struct Tournament<R> {
    /// The second half is what is entered; before it, at `i`, the first of what stands at `2 * i`
    /// and at `2 * i + 1`.
    winners: Vec<Entry<R>>,
}

impl<R: Copy + Ord> Tournament<R> {
    /// At so many places, of which all are empty.
    fn among(places: usize) -> Tournament<R> {
        Tournament {
            winners: vec![None; 2 * places],
        }
    }

    /// The arc of the lowest rank.
    fn winner(&self) -> Option<usize> {
        let winner = self.winners.get(1).copied().flatten();
        winner.map(|(_, arc)| arc)
    }

    /// Puts something at a place; what was there before.
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

    use super::*;
    use crate::seeded::SplitMix64;

    /// The arcs by increasing key, each that finds both ports free.
    fn one_by_one(arcs: &Arcs, keys: &[Option<u64>]) -> Vec<usize> {
        let mut waiting: Vec<usize> = (0..arcs.len()).filter(|arc| keys[*arc].is_some()).collect();
        waiting.sort_by_key(|arc| (keys[*arc], *arc));
        let (mut senders, mut receivers) = (BTreeSet::new(), BTreeSet::new());
        waiting.retain(|arc| {
            let [from, to] = arcs.ends(*arc);
            let are_free = !senders.contains(&from) && !receivers.contains(&to);
            are_free && senders.insert(from) && receivers.insert(to)
        });
        waiting.sort_unstable();
        waiting
    }

    /// On bushy trees, where few keys change from one step to the next.
    #[test]
    fn what_crosses_is_what_comes_first_and_finds_both_ports_free() {
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
