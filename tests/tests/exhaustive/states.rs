//! The least time of any gather once more, by brute force: breadth first through
//! everything the PEs can do, step by step, with no idea of what is sensible. It
//! shares nothing with `optimum.rs`, which it is there to check.

use std::collections::HashSet;

use flitcast_proto::{PeId, Tree};

/// The least time of any gather, in steps; 0 if there is nothing to send.
pub fn gather_steps(tree: &Tree, flits: &[u64]) -> u64 {
    let mut start = vec![Station::default(); tree.len()];
    start[0].ordered = true;
    let mut seen = HashSet::from([start.clone()]);
    let mut states = vec![start];
    let mut steps = 0;
    while !states.iter().any(|state| is_over(state, flits)) {
        let mut next = Vec::new();
        for before in &states {
            let choice = Choice {
                tree,
                flits,
                before,
            };
            choice.all(&mut next);
        }
        next.retain(|state| seen.insert(state.clone()));
        states = next;
        steps += 1;
    }
    steps
}

/// What matters of a PE between two steps.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Station {
    /// An order from P0 has reached it.
    ordered: bool,
    /// How much of its own message it has sent.
    sent: u64,
    /// It received a flit that is not for it.
    holds: bool,
}

fn is_over(state: &[Station], flits: &[u64]) -> bool {
    let mut stations = state.iter().zip(flits);
    stations.all(|(station, &own)| station.sent == own && !station.holds)
}

/// What the PEs can send in one step.
struct Choice<'a> {
    tree: &'a Tree,
    flits: &'a [u64],
    before: &'a [Station],
}

impl Choice<'_> {
    /// Appends every state that the step can lead to.
    fn all(&self, states: &mut Vec<Vec<Station>>) {
        let mut after = self.before.to_vec();
        for station in &mut after {
            station.holds = false;
        }
        let received = vec![false; after.len()];
        self.from(0, &after, &received, states);
    }

    /// The PEs before `at` have chosen: that makes `after`, and `received` says whose
    /// receive port it takes.
    fn from(
        &self,
        at: usize,
        after: &[Station],
        received: &[bool],
        states: &mut Vec<Vec<Station>>,
    ) {
        let Some(&station) = self.before.get(at) else {
            return states.push(after.to_vec());
        };
        let pe = PeId(at as u32);
        let under_way = 0 < station.sent && station.sent < self.flits[at];
        if station.holds && under_way {
            return; // Two flits have to go on: a way that breaks the rules.
        }
        if !station.holds && !under_way {
            self.from(at + 1, after, received, states);
        }
        let mut send = |to: PeId, change: &dyn Fn(&mut [Station])| {
            if received[to.index()] {
                return;
            }
            let (mut after, mut received) = (after.to_vec(), received.to_vec());
            received[to.index()] = true;
            change(&mut after);
            self.from(at + 1, &after, &received, states);
        };
        if let Some(parent) = self.tree.parent(pe) {
            let own = !station.holds && station.ordered && station.sent < self.flits[at];
            if station.holds || own {
                send(parent, &|after| {
                    after[at].sent += u64::from(own);
                    after[parent.index()].holds = parent != PeId::ROOT;
                });
            }
        }
        if station.ordered && !station.holds && !under_way {
            for &child in self.tree.children(pe) {
                send(child, &|after| after[child.index()].ordered = true);
            }
        }
    }
}
